//! Preprocessing of datasets into samples, for engines and calibration.
//!
//! [`prepare`] converts a published dataset to one `.npy` file per sample and a map file of names and labels. They are
//! below a scratch directory with the layout of `MLPERF_SCRATCH_PATH` (`data/`, `models/`, `preprocessed_data/`). Arrays
//! for models with several inputs are taken from other programs. [`convert_samples`] converts samples to 16-bit floats or
//! 8-bit integers, in the layouts that engines read. [`install_bundled`]
//! does so for the dataset and model that come with Regatta.
//!
//! The crate downloads nothing and runs no model.

mod array_samples;
mod arrays;
mod atomic;
mod bundled;
mod conversion;
mod csv_images;
mod damaged_images;
mod detection_images;
mod error;
mod image_formats;
mod image_sample_maker;
mod image_samples;
mod in_order;
mod jpeg_images;
mod letterbox;
mod letterbox_images;
mod npy;
mod packing;
mod prepare;
mod published;
mod quantisation;
mod report;
mod samples;
mod speech;
mod squad;
mod verification;
mod volumes;

pub use bundled::install_bundled;
pub use conversion::convert_samples;
pub use damaged_images::{DamagedImage, ImageFault};
pub use error::{PrepError, PrepHint, TableError};
pub use image_formats::FormatError;
pub use image_sample_maker::ImageSampleMaker;
pub use image_samples::{check_images, prepare_images, sample_target};
pub use jpeg_images::{ImageRequest, labels_among};
pub use npy::NpyError;
pub use prepare::{prepare, raw_data_dir};
pub use published::PublishedError;
pub use quantisation::{ScaleError, read_calibration_scale};
pub use report::PrepReport;
pub use verification::{Verification, verify_samples};
