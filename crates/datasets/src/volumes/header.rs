//! The header of a NIfTI-1 or NIfTI-2 file of one volume: size, type, spacing and orientation, as nibabel reads them. Reads no voxel.

use super::{
    error::VolumeFault,
    header_fields::{HeaderBytes, HeaderFields},
};

/// The longest side of a volume that is read: segmentations are written as NIfTI-1, which stores sides as 16-bit integers.
const MAX_SIDE: i64 = i16::MAX as i64;
/// The farthest byte at which voxels may begin.
const MAX_OFFSET: f64 = 1e9;
/// The most voxels of a volume that are read. The largest case of KiTS19 has 277 million.
pub const MAX_VOXELS: usize = 1 << 29;

/// The type of a voxel on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VoxelType {
    U8,
    I8,
    I16,
    U16,
    I32,
    U32,
    F32,
    F64,
}

impl VoxelType {
    /// Returns the type with the code in a header.
    const fn with_code(code: i16) -> Option<Self> {
        match code {
            2 => Some(Self::U8),
            4 => Some(Self::I16),
            8 => Some(Self::I32),
            16 => Some(Self::F32),
            64 => Some(Self::F64),
            256 => Some(Self::I8),
            512 => Some(Self::U16),
            768 => Some(Self::U32),
            _ => None,
        }
    }

    /// Returns the bytes of a voxel.
    pub const fn size(self) -> usize {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::F64 => 8,
        }
    }
}

/// The header of a volume.
#[derive(Debug, Clone, PartialEq)]
pub struct NiftiHeader {
    /// The number of voxels along each dimension. The first is the fastest in the file.
    pub size: [usize; 3],
    pub voxel: VoxelType,
    /// Whether numbers begin with their highest byte.
    pub is_big_endian: bool,
    /// The position of the first voxel in the file.
    pub offset: u64,
    /// The factor and the summand of values; `None` for values as they are.
    pub scaling: Option<[f64; 2]>,
    /// The distance of voxels along each dimension, in millimetres.
    pub spacing: [f64; 3],
    /// The first three rows of the affine map from voxels to millimetres.
    pub affine: [[f64; 4]; 3],
}

impl NiftiHeader {
    /// Parses a header.
    ///
    /// # Errors
    /// Returns [`VolumeFault`] when a file with this header is not read.
    pub(super) fn parse(bytes: &HeaderBytes) -> Result<Self, VolumeFault> {
        let fields = bytes.fields();
        let format = fields.format;
        if bytes.bytes[format.magic..][..format.magic_bytes.len()] != *format.magic_bytes {
            return Err(VolumeFault::NoVoxels(format.name));
        }
        let dims: [i64; 4] = [0, 1, 2, 3].map(|number| fields.dim(number));
        let size = [1, 2, 3].map(|number: usize| usize::try_from(dims[number]).unwrap_or(0));
        if dims[0] != 3 || dims[1..].iter().any(|dim| !(1..=MAX_SIDE).contains(dim)) {
            return Err(VolumeFault::Dimensions {
                dimensions: dims[0],
                size,
                max: MAX_SIDE,
            });
        }
        let voxels = size.iter().product::<usize>();
        if voxels > MAX_VOXELS {
            let max = MAX_VOXELS;
            return Err(VolumeFault::TooLarge { size, max });
        }
        let code = fields.short(format.datatype);
        let voxel = VoxelType::with_code(code).ok_or(VolumeFault::VoxelType(code))?;
        let offset = fields.offset();
        if !(format.header_bytes as f64..=MAX_OFFSET).contains(&offset) {
            return Err(VolumeFault::Offset(offset));
        }
        let spacing = [1, 2, 3].map(|number| fields.float(format.pixdim, number));
        if spacing
            .iter()
            .any(|spacing| !(spacing.is_finite() && *spacing > 0.0))
        {
            return Err(VolumeFault::Spacing(spacing));
        }
        Ok(Self {
            size,
            voxel,
            is_big_endian: fields.is_big_endian,
            // Between 348 and 1e9.
            offset: offset as u64,
            scaling: scaling(fields.float(format.slope, 0), fields.float(format.inter, 0))?,
            spacing,
            affine: affine(&fields, size, spacing)?,
        })
    }

    /// Returns the number of voxels.
    pub fn voxels(&self) -> usize {
        self.size.iter().product()
    }
}

/// Returns factor and summand of values, as nibabel does: a factor of zero or none means no scaling.
fn scaling(slope: f64, inter: f64) -> Result<Option<[f64; 2]>, VolumeFault> {
    if slope == 0.0 || !slope.is_finite() {
        return Ok(None);
    }
    if !inter.is_finite() {
        return Err(VolumeFault::Scaling { slope, inter });
    }
    Ok(Some([slope, inter]).filter(|scaling| *scaling != [1.0, 0.0]))
}

/// Returns the affine map that nibabel prefers: the one in the header, or its quaternion, or the plain spacing.
fn affine(
    fields: &HeaderFields<'_>,
    size: [usize; 3],
    spacing: [f64; 3],
) -> Result<[[f64; 4]; 3], VolumeFault> {
    let format = fields.format;
    let [qform, sform] = [format.qform, format.sform].map(|place| fields.code(place));
    let rows = if sform > 0 {
        [0, 4, 8].map(|row| [0, 1, 2, 3].map(|column| fields.float(format.rows, row + column)))
    } else if qform > 0 {
        let quaternion = [0, 1, 2].map(|part| fields.float(format.quaternion, part));
        let handedness = if fields.float(format.pixdim, 0) < 0.0 {
            -1.0
        } else {
            1.0
        };
        let shift = [0, 1, 2].map(|axis| fields.float(format.shift, axis));
        rotated(
            quaternion,
            [spacing[0], spacing[1], spacing[2] * handedness],
            shift,
        )
    } else {
        // The origin is in the centre, and the first axis is mirrored.
        let centre = [0, 1, 2].map(|axis: usize| (size[axis] as f64 - 1.0) / 2.0 * spacing[axis]);
        [
            [-spacing[0], 0.0, 0.0, centre[0]],
            [0.0, spacing[1], 0.0, -centre[1]],
            [0.0, 0.0, spacing[2], -centre[2]],
        ]
    };
    if rows.iter().flatten().all(|value| value.is_finite()) {
        Ok(rows)
    } else {
        Err(VolumeFault::Affine)
    }
}

/// Returns the map of a rotation, whose quaternion has the parts `b`, `c` and `d`, with a spacing and a shift.
fn rotated([b, c, d]: [f64; 3], spacing: [f64; 3], shift: [f64; 3]) -> [[f64; 4]; 3] {
    let a = (1.0 - (b * b + c * c + d * d)).max(0.0).sqrt();
    let rotation = [
        [
            a * a + b * b - c * c - d * d,
            2.0 * (b * c - a * d),
            2.0 * (b * d + a * c),
        ],
        [
            2.0 * (b * c + a * d),
            a * a + c * c - b * b - d * d,
            2.0 * (c * d - a * b),
        ],
        [
            2.0 * (b * d - a * c),
            2.0 * (c * d + a * b),
            a * a + d * d - b * b - c * c,
        ],
    ];
    [0, 1, 2].map(|row: usize| {
        let [x, y, z] = [0, 1, 2].map(|column: usize| rotation[row][column] * spacing[column]);
        [x, y, z, shift[row]]
    })
}
