//! The errors of volumes: files in NIfTI's form, and cases that are missing or do not fit together.

use std::{io, path::PathBuf};

/// What is wrong with the contents of a volume's file.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum VolumeFault {
    /// The file does not begin with a header.
    #[error("it has no header of NIfTI")]
    NoHeader,
    /// The voxels are in another file.
    #[error("it is not a {0} file with voxels behind its header")]
    NoVoxels(&'static str),
    /// It does not have three dimensions, or a dimension is too long.
    #[error("it has {dimensions} dimensions of {size:?} voxels instead of three of at most {max}")]
    Dimensions {
        /// The number of dimensions.
        dimensions: i64,
        /// The voxels along the first three of them.
        size: [usize; 3],
        /// The largest number of voxels along one.
        max: i64,
    },
    /// It has too many voxels.
    #[error("its {size:?} are more than {max} voxels")]
    TooLarge {
        /// The voxels along each dimension.
        size: [usize; 3],
        /// The largest number of voxels.
        max: usize,
    },
    /// The type of voxels is not read.
    #[error("its voxels have the type {0}, which is not read")]
    VoxelType(i16),
    /// The voxels overlap the header.
    #[error("its voxels begin at byte {0}, within the header")]
    Offset(f64),
    /// A distance of voxels is not a positive number.
    #[error("its voxels have the distances {0:?} millimetres")]
    Spacing([f64; 3]),
    /// The scale of values is not finite.
    #[error("its values are scaled by {slope} and moved by {inter}")]
    Scaling {
        /// The factor.
        slope: f64,
        /// The summand.
        inter: f64,
    },
    /// The map from voxels to millimetres is not finite.
    #[error("its affine map is not finite")]
    Affine,
    /// The file has more bytes than voxels.
    #[error("it continues behind its last voxel")]
    Trailing,
    /// A value is infinite or not a number.
    #[error("a value is not a finite number")]
    NotFinite,
    /// A voxel has a class that does not exist.
    #[error("a voxel has the class {class}, but there are {classes}, from 0")]
    Class {
        /// The value in the file.
        class: f64,
        /// The number of classes.
        classes: usize,
    },
    /// At the common spacing, the volume is empty or too large.
    #[error(
        "its {size:?} voxels at distances of {spacing:?} millimetres become {zoomed:?}, which is nothing or more than {max} voxels with padding"
    )]
    Zoomed {
        /// The voxels along each dimension.
        size: [usize; 3],
        /// Their distances in millimetres.
        spacing: [f64; 3],
        /// The voxels along each dimension at the common spacing.
        zoomed: [usize; 3],
        /// The largest number of voxels.
        max: usize,
    },
    /// The axes are not parallel to those of the scanner.
    #[error("its axes are rotated, which the reference does not read either")]
    Rotated,
}

/// The error for a volume that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VolumeError {
    /// A file is missing, damaged or cannot be read.
    #[error("the volume {path} cannot be read; hint: download this case again", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A file is not the NIfTI file of a volume.
    #[error("the volume {path} cannot be used: {reason}; hint: download this case again", path = path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: VolumeFault,
    },
    /// Values and classes of a case have different sizes.
    #[error(
        "the segmentation {path} has {found:?} voxels, but its volume has {expected:?}; hint: download this case again",
        path = path.display()
    )]
    Sizes {
        /// The segmentation.
        path: PathBuf,
        /// Its size.
        found: [usize; 3],
        /// The size of the values.
        expected: [usize; 3],
    },
    /// The machine has not enough memory for a case.
    #[error(
        "the volume in {directory} takes {needed} MiB of memory, but {free} MiB are free; hint: end other programs, or use another machine",
        needed = needed.div_ceil(1 << 20), free = free >> 20, directory = directory.display()
    )]
    Memory {
        /// The directory of the case.
        directory: PathBuf,
        /// The bytes that it takes.
        needed: u64,
        /// The bytes that are free, with swap.
        free: u64,
    },
    /// Cases are missing.
    #[error(
        "{missing} of {total} cases are not in {dir} with both files, the first is {first}; hint: `regatta data show {benchmark}` shows how KiTS19 is downloaded",
        dir = dir.display()
    )]
    MissingCases {
        /// The directory of the cases.
        dir: PathBuf,
        /// The number of missing cases.
        missing: usize,
        /// The number of cases.
        total: usize,
        /// The first missing case.
        first: String,
        /// The benchmark's name.
        benchmark: String,
    },
    /// A calibration list names a case twice, none, or one that is a sample.
    #[error(
        "the calibration list {path} names {name}, which is repeated, a sample of the benchmark, or no directory's name; hint: use the list of calibration/KiTS of mlcommons/inference",
        path = path.display()
    )]
    CalibrationCase {
        /// The list.
        path: PathBuf,
        /// The case.
        name: String,
    },
}
