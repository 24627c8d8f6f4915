//! The errors of volumes: files in NIfTI's form, and cases that are missing or do not fit together.

use std::{io, path::PathBuf};

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
        reason: String,
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
