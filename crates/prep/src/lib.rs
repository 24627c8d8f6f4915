//! Datasets made into samples, and answers made into accuracy.
//!
//! [`prepare`] turns a dataset as published into what the field keeps on disk: one `.npy` per sample and a map file of
//! names and labels, below a scratch directory laid out as `MLPERF_SCRATCH_PATH` is (`data/`, `models/`,
//! `preprocessed_data/`); arrays of several inputs are taken as other programs leave them. [`make_form`] makes 16-bit floats and
//! bytes of samples, in the layouts that engines read. [`bundled`] holds the one dataset and model that come with Regatta. [`accuracy`] judges
//! `mlperf_log_accuracy.json` as the official scripts do.
//!
//! The crate downloads nothing and runs no model.

pub mod accuracy;
mod arrays;
mod atomic;
pub mod bundled;
mod csv_images;
mod error;
mod forms;
mod layout;
mod npy;
mod prepare;
mod samples;
mod scale;
mod val_map;

pub use error::{PrepError, TableFault};
pub use forms::make_form;
pub use npy::NpyFault;
pub use prepare::{PrepReport, prepare, raw_data_dir};
pub use scale::{ScaleError, scale_in_cache};
pub use val_map::{ValMap, ValMapError};
