//! A request to prepare a dataset of JPEG images or volumes. It does not check anything.

use std::path::Path;

use regatta_types::{
    benchmark::Benchmark,
    samples::{Form, Quantised},
};

/// What to make of a dataset of JPEG images or volumes.
#[derive(Debug, Clone, Copy)]
pub struct ImageRequest<'a> {
    /// The benchmark, with its own form of samples and the preparation kind `jpeg-images`.
    pub benchmark: &'a Benchmark,
    /// The form of the samples to make.
    pub form: Form,
    /// Scale and rounding, for `int8` only.
    pub quantised: Option<&'a Quantised>,
    /// The directory of the images.
    pub data: &'a Path,
    /// The file of names and labels; `None` for `val_map.txt` or `val.txt` among the images.
    pub labels: Option<&'a Path>,
    /// A list of images for calibration, a name per line. Only these are made, in a separate directory.
    pub calibration: Option<&'a Path>,
    /// Whether damaged images that the reference decodes become samples with its pixels, instead of an error.
    pub accepts_damaged: bool,
}
