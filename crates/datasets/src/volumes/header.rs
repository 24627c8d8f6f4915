//! The header of a NIfTI-1 file of one volume: size, type, spacing and orientation, as nibabel reads them. Reads no voxel.

/// The bytes of a header.
pub(super) const HEADER_BYTES: usize = 348;
/// The most voxels along a dimension that are read: NIfTI stores sizes as 16-bit integers.
const MAX: i16 = i16::MAX;
/// The most voxels of a volume that are read. The largest case of KiTS19 has 277 million.
const MAX_VOXELS: usize = 1 << 29;

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
    /// The type of a voxel.
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
    /// The reason why a file with this header is not read.
    pub fn parse(bytes: &[u8; HEADER_BYTES]) -> Result<Self, String> {
        let fields = Fields {
            bytes,
            is_big_endian: bytes[..4] == 348_i32.to_be_bytes(),
        };
        if !fields.is_big_endian && bytes[..4] != 348_i32.to_le_bytes() {
            return Err("it has no header of NIfTI-1".to_owned());
        }
        if bytes[344..348] != *b"n+1\0" {
            return Err("it is not a NIfTI-1 file with voxels behind its header (`n+1`)".to_owned());
        }
        let dims: [i16; 4] = [0, 1, 2, 3].map(|number| fields.int(40 + 2 * number));
        let size = [1, 2, 3].map(|number: usize| usize::try_from(dims[number]).unwrap_or(0));
        if dims[0] != 3 || dims[1..].iter().any(|&dim| !(1..=MAX).contains(&dim)) {
            return Err(format!(
                "it has {} dimensions of {size:?} voxels instead of three",
                dims[0]
            ));
        }
        let voxels = size.iter().product::<usize>();
        if voxels > MAX_VOXELS {
            return Err(format!("its {size:?} are more than {MAX_VOXELS} voxels"));
        }
        let code = fields.int(70);
        let voxel = VoxelType::with_code(code)
            .ok_or_else(|| format!("its voxels have the type {code}, which is not read"))?;
        let offset = fields.float(108);
        if !(HEADER_BYTES as f32..=1e9).contains(&offset) {
            return Err(format!("its voxels begin at byte {offset}, within the header"));
        }
        let spacing = [1, 2, 3].map(|number| f64::from(fields.float(76 + 4 * number)));
        if spacing
            .iter()
            .any(|spacing| !(spacing.is_finite() && *spacing > 0.0))
        {
            return Err(format!("its voxels have the distances {spacing:?} millimetres"));
        }
        Ok(Self {
            size,
            voxel,
            is_big_endian: fields.is_big_endian,
            // Between 348 and 1e9.
            offset: offset as u64,
            scaling: scaling(f64::from(fields.float(112)), f64::from(fields.float(116)))?,
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
fn scaling(slope: f64, inter: f64) -> Result<Option<[f64; 2]>, String> {
    if slope == 0.0 || !slope.is_finite() {
        return Ok(None);
    }
    if !inter.is_finite() {
        return Err(format!("its values are scaled by {slope} and moved by {inter}"));
    }
    Ok(Some([slope, inter]).filter(|scaling| *scaling != [1.0, 0.0]))
}

/// Returns the affine map that nibabel prefers: the one in the header, or its quaternion, or the plain spacing.
fn affine(fields: &Fields<'_>, size: [usize; 3], spacing: [f64; 3]) -> Result<[[f64; 4]; 3], String> {
    let [qform, sform] = [252, 254].map(|place| fields.int(place));
    let rows = if sform > 0 {
        [280, 296, 312].map(|row| [0, 4, 8, 12].map(|column| f64::from(fields.float(row + column))))
    } else if qform > 0 {
        let [b, c, d] = [256, 260, 264].map(|place| f64::from(fields.float(place)));
        let handedness = if fields.float(76) < 0.0 { -1.0 } else { 1.0 };
        let shift = [268, 272, 276].map(|place| f64::from(fields.float(place)));
        rotated(
            [b, c, d],
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
        Err("its affine map is not finite".to_owned())
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

/// The numbers in a header's bytes.
struct Fields<'a> {
    bytes: &'a [u8; HEADER_BYTES],
    is_big_endian: bool,
}

impl Fields<'_> {
    fn array<const N: usize>(&self, place: usize) -> [u8; N] {
        let mut array = [0; N];
        array.copy_from_slice(&self.bytes[place..place + N]);
        if self.is_big_endian {
            array.reverse();
        }
        array
    }

    fn int(&self, place: usize) -> i16 {
        i16::from_le_bytes(self.array(place))
    }

    fn float(&self, place: usize) -> f32 {
        f32::from_le_bytes(self.array(place))
    }
}
