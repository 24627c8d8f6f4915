//! Accuracy out of `mlperf_log_accuracy.json`, as the official scripts reckon it.
//!
//! [`measure`] goes by a benchmark's file; [`top1`] takes log, labels and type as they are given. What accuracy suffices
//! stands in the benchmark's file.

mod label;
mod measure;
mod top1;

pub use label::{LabelFault, LabelType};
pub use measure::{MeasureError, Measured, measure};
pub use top1::{AccuracyError, Top1, top1};
