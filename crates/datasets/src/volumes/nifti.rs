//! Reads the voxels of a gzipped or plain NIfTI file, and writes segmentations as NIfTI-1. Memory is bounded by the header, which is
//! checked first; a file that unpacks to more than its header says is refused.

use std::{
    fs::File,
    io::{self, BufReader, Read, Write as _},
    path::Path,
};

use flate2::{Compression, write::GzEncoder};
use regatta_fsutil::regular_file;

use super::{
    error::{VolumeError, VolumeFault},
    gzip_members::GzipMembers,
    header::{NiftiHeader, VoxelType},
    header_fields::HeaderBytes,
};

/// A gzip file begins with these bytes.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// The planes that are transposed together: a cache line of 32-bit floats.
pub const PLANES: usize = 16;
/// Where the voxels of a written file begin: behind the header and an empty list of extensions.
const VOXELS_AT: usize = 352;

/// An opened file whose header is read.
pub struct NiftiFile {
    pub header: NiftiHeader,
    rest: Box<dyn Read>,
    /// The bytes that were read.
    position: u64,
}

impl NiftiFile {
    /// Opens a file and reads its header.
    pub fn open(path: &Path) -> Result<Self, VolumeError> {
        let unreadable = |source| VolumeError::Read {
            path: path.to_owned(),
            source,
        };
        let file = regular_file::open(path).map_err(unreadable)?;
        let mut rest = unpacked(file).map_err(unreadable)?;
        let refused = |reason| VolumeError::Form {
            path: path.to_owned(),
            reason,
        };
        let bytes = HeaderBytes::read(&mut rest).map_err(unreadable)?;
        let bytes = bytes.ok_or_else(|| refused(VolumeFault::NoHeader))?;
        Ok(Self {
            header: NiftiHeader::parse(&bytes).map_err(refused)?,
            rest,
            position: bytes.len() as u64,
        })
    }

    /// Reads all voxels, scales and converts them, and returns them with the last dimension fastest.
    pub fn voxels<T: Copy + Default>(
        mut self,
        path: &Path,
        convert: impl Fn(f64) -> Result<T, VolumeFault>,
    ) -> Result<Vec<T>, VolumeError> {
        self.read(convert).map_err(|error| match error {
            VoxelError::Read(source) => VolumeError::Read {
                path: path.to_owned(),
                source,
            },
            VoxelError::Value(reason) => VolumeError::Form {
                path: path.to_owned(),
                reason,
            },
        })
    }

    fn read<T: Copy + Default>(
        &mut self,
        convert: impl Fn(f64) -> Result<T, VolumeFault>,
    ) -> Result<Vec<T>, VoxelError> {
        let gap = self.header.offset - self.position;
        if io::copy(&mut (&mut self.rest).take(gap), &mut io::sink())? < gap {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        let [rows, columns, planes] = self.header.size;
        let size = self.header.voxel.size();
        let mut values = vec![T::default(); self.header.voxels()];
        let mut block = vec![0; rows * columns * size * PLANES.min(planes)];
        let mut block_values = vec![T::default(); rows * columns * PLANES.min(planes)];
        for first in (0..planes).step_by(PLANES) {
            let count = PLANES.min(planes - first);
            let bytes = &mut block[..rows * columns * size * count];
            self.rest.read_exact(bytes)?;
            for (value, bytes) in block_values.iter_mut().zip(bytes.chunks_exact(size)) {
                *value = convert(self.value(bytes)).map_err(VoxelError::Value)?;
            }
            for row in 0..rows {
                for column in 0..columns {
                    let to = (row * columns + column) * planes + first;
                    for (plane, value) in values[to..to + count].iter_mut().enumerate() {
                        *value = block_values[(plane * columns + column) * rows + row];
                    }
                }
            }
        }
        if self.rest.read(&mut [0])? > 0 {
            return Err(VoxelError::Value(VolumeFault::Trailing));
        }
        Ok(values)
    }

    /// Returns the scaled value of a voxel.
    fn value(&self, bytes: &[u8]) -> f64 {
        let raw = raw_value(bytes, self.header.voxel, self.header.is_big_endian);
        let Some([slope, inter]) = self.header.scaling else {
            return raw;
        };
        // nibabel skips a scale of 1 and an intercept of 0, and otherwise multiplies and adds in two steps.
        let scaled = raw * slope;
        scaled + inter
    }
}

enum VoxelError {
    Read(io::Error),
    Value(VolumeFault),
}

impl From<io::Error> for VoxelError {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}

fn raw_value(bytes: &[u8], voxel: VoxelType, is_big_endian: bool) -> f64 {
    let mut array = [0; 8];
    let size = voxel.size();
    array[..size].copy_from_slice(bytes);
    if is_big_endian {
        array[..size].reverse();
    }
    let [a, b, c, d, ..] = array;
    match voxel {
        VoxelType::U8 => f64::from(a),
        VoxelType::I8 => f64::from(i8::from_le_bytes([a])),
        VoxelType::I16 => f64::from(i16::from_le_bytes([a, b])),
        VoxelType::U16 => f64::from(u16::from_le_bytes([a, b])),
        VoxelType::I32 => f64::from(i32::from_le_bytes([a, b, c, d])),
        VoxelType::U32 => f64::from(u32::from_le_bytes([a, b, c, d])),
        VoxelType::F32 => f64::from(f32::from_le_bytes([a, b, c, d])),
        VoxelType::F64 => f64::from_le_bytes(array),
    }
}

/// Returns the unpacked bytes of a file, which need not be packed.
fn unpacked(file: File) -> io::Result<Box<dyn Read>> {
    let mut file = BufReader::with_capacity(1 << 16, file);
    let is_packed = io::BufRead::fill_buf(&mut file)?.starts_with(&GZIP);
    Ok(if is_packed {
        Box::new(BufReader::with_capacity(1 << 16, GzipMembers::new(file)))
    } else {
        Box::new(file)
    })
}

/// Returns a gzipped NIfTI-1 file of classes, whose last dimension is the fastest in `classes`. Equal classes give equal bytes.
pub fn segmentation_file(
    classes: &[u8],
    size: [usize; 3],
    spacing: [f64; 3],
    affine: &[[f64; 4]; 3],
) -> io::Result<Vec<u8>> {
    let mut header = [0; VOXELS_AT];
    let mut put = |place: usize, bytes: &[u8]| header[place..place + bytes.len()].copy_from_slice(bytes);
    put(0, &348_i32.to_le_bytes());
    put(38, b"r");
    for (place, dim) in [3, size[0], size[1], size[2], 1, 1, 1, 1].into_iter().enumerate() {
        let dim = i16::try_from(dim).map_err(io::Error::other)?;
        put(40 + 2 * place, &dim.to_le_bytes());
    }
    put(70, &2_i16.to_le_bytes());
    put(72, &8_i16.to_le_bytes());
    let spacing = spacing.map(|spacing| spacing as f32);
    for (place, value) in [1.0, spacing[0], spacing[1], spacing[2]].iter().enumerate() {
        put(76 + 4 * place, &value.to_le_bytes());
    }
    put(108, &(VOXELS_AT as f32).to_le_bytes());
    put(112, &1.0_f32.to_le_bytes());
    put(254, &2_i16.to_le_bytes());
    for (place, value) in affine.iter().flatten().enumerate() {
        put(280 + 4 * place, &(*value as f32).to_le_bytes());
    }
    put(344, b"n+1\0");
    let mut file = GzEncoder::new(Vec::new(), Compression::fast());
    file.write_all(&header)?;
    let [rows, columns, planes] = size;
    let mut plane_bytes = vec![0; rows * columns];
    for plane in 0..planes {
        for (to, byte) in plane_bytes.iter_mut().enumerate() {
            let (column, row) = (to / rows, to % rows);
            *byte = classes[(row * columns + column) * planes + plane];
        }
        file.write_all(&plane_bytes)?;
    }
    file.finish()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use flate2::read::GzDecoder;
    use proptest::prelude::*;

    use super::*;

    const AFFINE: [[f64; 4]; 3] = [[0.0, 0.0, -1.2, 5.0], [0.0, 1.2, 0.0, 6.0], [1.6, 0.0, 0.0, 7.0]];

    /// Reads a file of classes.
    fn read(file: &[u8]) -> Result<(NiftiHeader, Vec<u8>), VolumeError> {
        let place = tempfile::NamedTempFile::new().unwrap();
        fs::write(place.path(), file).unwrap();
        let file = NiftiFile::open(place.path())?;
        let header = file.header.clone();
        let voxels = file.voxels(place.path(), |value| Ok(value as u8))?;
        Ok((header, voxels))
    }

    fn written(voxels: &[u8]) -> Vec<u8> {
        segmentation_file(voxels, [2, 3, 4], [1.6, 1.2, 1.2], &AFFINE).unwrap()
    }

    #[test]
    fn a_written_segmentation_is_read_as_it_was() {
        let voxels: Vec<u8> = (0..24).collect();
        let (header, found) = read(&written(&voxels)).unwrap();
        assert_eq!(found, voxels);
        assert_eq!((header.size, header.scaling), ([2, 3, 4], None));
        let is_near = |one: f64, other: f64| (one - other).abs() < 1e-6;
        let rows = header.affine.as_flattened().iter().zip(AFFINE.as_flattened());
        assert!(rows.into_iter().all(|(one, other)| is_near(*one, *other)));
    }

    proptest! {
        /// Bytes from outside never cause a panic, packed or not.
        #[test]
        fn damaged_files_are_read_or_refused(
            changes in prop::collection::vec((0..376_usize, any::<u8>()), 1..6),
            length in 0..400_usize,
            is_packed in any::<bool>(),
        ) {
            let mut file = Vec::new();
            GzDecoder::new(&written(&[1; 24])[..]).read_to_end(&mut file).unwrap();
            for (place, byte) in changes {
                file[place] = byte;
            }
            file.truncate(length);
            if is_packed {
                let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
                packed.write_all(&file).unwrap();
                file = packed.finish().unwrap();
            }
            let _ = read(&file);
        }
    }
}
