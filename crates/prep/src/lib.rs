//! Datasets made into samples, and answers made into accuracy.
//!
//! [`prepare`] turns a dataset as published into what the field keeps on disk: one `.npy` per sample and a map file of
//! names and labels, below a scratch directory laid out as `MLPERF_SCRATCH_PATH` is (`data/`, `models/`,
//! `preprocessed_data/`). [`bundled`] holds the one dataset and model that come with Regatta. [`accuracy`] judges
//! `mlperf_log_accuracy.json` as the official scripts do.
//!
//! The crate downloads nothing and runs no model.

pub mod accuracy;
mod atomic;
pub mod bundled;
mod csv_images;
mod error;
mod npy;
mod prepare;
mod samples;
mod val_map;

pub use error::{PrepError, TableFault};
pub use prepare::{PrepReport, prepare, raw_data_dir};
pub use val_map::{ValMap, ValMapError};
