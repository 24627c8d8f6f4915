//! The result of a preparation.

use std::path::PathBuf;

use crate::damaged_images::DamagedImage;

/// The result of a preparation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrepReport {
    pub samples: usize,
    /// The number of samples that existed already with the same bytes.
    pub unchanged: usize,
    /// The number of values beyond the range of their new type, which were clipped or became infinite.
    pub clipped: u64,
    /// The damaged images whose samples were made on request.
    pub damaged: Vec<DamagedImage>,
    /// The directory of the samples.
    pub dir: PathBuf,
    /// The path of the map file.
    pub map: PathBuf,
}
