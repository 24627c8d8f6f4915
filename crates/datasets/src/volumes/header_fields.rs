//! The bytes of a header of NIfTI-1 or NIfTI-2, and the numbers in them. What they mean is the header's.

use std::io::{self, Read};

/// The places of the fields in one version of the format. NIfTI-2 has wider numbers at other places.
#[derive(Debug)]
pub(super) struct NiftiFormat {
    pub(super) name: &'static str,
    /// The first field of the header: its length.
    pub(super) header_bytes: i32,
    /// The bytes of a size, and of a floating-point number.
    dim_bytes: usize,
    float_bytes: usize,
    pub(super) magic: usize,
    pub(super) magic_bytes: &'static [u8],
    dim: usize,
    pub(super) datatype: usize,
    pub(super) pixdim: usize,
    offset: usize,
    pub(super) slope: usize,
    pub(super) inter: usize,
    pub(super) qform: usize,
    pub(super) sform: usize,
    pub(super) quaternion: usize,
    pub(super) shift: usize,
    pub(super) rows: usize,
}

const NIFTI_1: NiftiFormat = NiftiFormat {
    name: "NIfTI-1",
    header_bytes: 348,
    dim_bytes: 2,
    float_bytes: 4,
    magic: 344,
    magic_bytes: b"n+1\0",
    dim: 40,
    datatype: 70,
    pixdim: 76,
    offset: 108,
    slope: 112,
    inter: 116,
    qform: 252,
    sform: 254,
    quaternion: 256,
    shift: 268,
    rows: 280,
};

const NIFTI_2: NiftiFormat = NiftiFormat {
    name: "NIfTI-2",
    header_bytes: 540,
    dim_bytes: 8,
    float_bytes: 8,
    magic: 4,
    magic_bytes: b"n+2\0\r\n\x1a\n",
    dim: 16,
    datatype: 12,
    pixdim: 104,
    offset: 168,
    slope: 176,
    inter: 184,
    qform: 344,
    sform: 348,
    quaternion: 352,
    shift: 376,
    rows: 400,
};

/// The bytes of a header, as long as its format says.
pub(crate) struct HeaderBytes {
    pub(super) bytes: Vec<u8>,
    format: &'static NiftiFormat,
    is_big_endian: bool,
}

impl HeaderBytes {
    /// Reads a header. `None` if the file begins like none.
    pub(crate) fn read(file: &mut impl Read) -> io::Result<Option<Self>> {
        let mut length = [0; 4];
        file.read_exact(&mut length)?;
        let found = [&NIFTI_1, &NIFTI_2].into_iter().find_map(|format| {
            let is_big_endian = length == format.header_bytes.to_be_bytes();
            (is_big_endian || length == format.header_bytes.to_le_bytes()).then_some((format, is_big_endian))
        });
        let Some((format, is_big_endian)) = found else {
            return Ok(None);
        };
        let mut bytes = vec![0; format.header_bytes.unsigned_abs() as usize];
        bytes[..4].copy_from_slice(&length);
        file.read_exact(&mut bytes[4..])?;
        Ok(Some(Self {
            bytes,
            format,
            is_big_endian,
        }))
    }

    /// Returns the number of bytes.
    pub(crate) const fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn fields(&self) -> HeaderFields<'_> {
        HeaderFields {
            bytes: &self.bytes,
            format: self.format,
            is_big_endian: self.is_big_endian,
        }
    }
}

/// The numbers in a header's bytes.
pub(super) struct HeaderFields<'a> {
    bytes: &'a [u8],
    pub(super) format: &'static NiftiFormat,
    pub(super) is_big_endian: bool,
}

impl HeaderFields<'_> {
    fn array<const N: usize>(&self, place: usize) -> [u8; N] {
        let mut array = [0; N];
        array.copy_from_slice(&self.bytes[place..place + N]);
        if self.is_big_endian {
            array.reverse();
        }
        array
    }

    fn integer(&self, place: usize, bytes: usize) -> i64 {
        match bytes {
            2 => i64::from(i16::from_le_bytes(self.array(place))),
            4 => i64::from(i32::from_le_bytes(self.array(place))),
            _ => i64::from_le_bytes(self.array(place)),
        }
    }

    pub(super) fn short(&self, place: usize) -> i16 {
        i16::from_le_bytes(self.array(place))
    }

    /// Returns a code of orientation.
    pub(super) fn code(&self, place: usize) -> i64 {
        self.integer(place, self.format.float_bytes / 2)
    }

    /// Returns the number of dimensions, or the size of the one with this number.
    pub(super) fn dim(&self, number: usize) -> i64 {
        self.integer(
            self.format.dim + number * self.format.dim_bytes,
            self.format.dim_bytes,
        )
    }

    /// Returns a number of a list that begins at `place`.
    pub(super) fn float(&self, place: usize, number: usize) -> f64 {
        let place = place + number * self.format.float_bytes;
        match self.format.float_bytes {
            4 => f64::from(f32::from_le_bytes(self.array(place))),
            _ => f64::from_le_bytes(self.array(place)),
        }
    }

    /// Returns the position of the first voxel, which only NIfTI-2 has as an integer.
    pub(super) fn offset(&self) -> f64 {
        match self.format.dim_bytes {
            8 => self.integer(self.format.offset, 8) as f64,
            _ => self.float(self.format.offset, 0),
        }
    }
}
