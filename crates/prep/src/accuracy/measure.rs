//! Computes the accuracy of a benchmark's run from its files, with the metric of the benchmark's file.

use std::{
    io,
    path::{Path, PathBuf},
};

use regatta_mllog::read::accuracy_file;
use regatta_types::benchmark::{Benchmark, Metric};

use super::{
    label::LabelType,
    top1::{Top1, Top1Error, top1},
};
use crate::val_map::{ValMap, ValMapError};

/// The accuracy of a run, with the target that it must reach.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredAccuracy {
    /// The numbers of correct, counted and missing responses.
    pub top1: Top1,
    /// The target in percent.
    pub target: f64,
}

impl MeasuredAccuracy {
    /// Returns whether the accuracy reaches the target. Like the official checker, it only compares the value;
    /// [`Top1::missing`] lists the samples without a response.
    #[must_use]
    pub fn reached(&self) -> bool {
        self.top1.percent() >= self.target
    }
}

/// The error when the accuracy of a run cannot be computed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeasureError {
    /// The benchmark's file does not define the type of its responses.
    #[error(
        "the file of benchmark {benchmark} does not define the type of its responses; hint: name it with --dtype"
    )]
    LabelType {
        /// The benchmark's name.
        benchmark: String,
    },
    /// Only the reference script computes the benchmark's metric.
    #[error(
        "only the reference's {script} computes the accuracy of benchmark {benchmark}; hint: regatta accuracy {benchmark} --log LOG --official {script}"
    )]
    Elsewhere {
        /// The benchmark's name.
        benchmark: String,
        /// The script's name.
        script: &'static str,
    },
    /// The map of the labels cannot be read.
    #[error("the labels of benchmark {benchmark} cannot be read (has its dataset been prepared?)")]
    Map {
        /// The benchmark's name.
        benchmark: String,
        /// The cause.
        #[source]
        source: ValMapError,
    },
    /// The log cannot be opened.
    #[error("cannot open {path}", path = path.display())]
    Open {
        /// The log.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The log contains no accuracy.
    #[error("no accuracy can be computed from {path}", path = path.display())]
    Log {
        /// The log.
        path: PathBuf,
        /// The cause, with its entry.
        #[source]
        source: Top1Error,
    },
}

/// Computes the accuracy of the log `log` with the labels below `scratch`. `label_type` overrides the response type of the
/// benchmark's file.
///
/// # Errors
/// [`MeasureError`] names the file that is missing or invalid.
pub fn measure(
    benchmark: &Benchmark,
    label_type: Option<LabelType>,
    log: &Path,
    scratch: &Path,
) -> Result<MeasuredAccuracy, MeasureError> {
    let name = || benchmark.name.clone();
    match benchmark.accuracy.metric {
        Metric::SquadF1 => Err(MeasureError::Elsewhere {
            benchmark: name(),
            script: "accuracy-squad.py",
        }),
        Metric::Top1 => {
            let label_type = label_type
                .or_else(|| LabelType::of(benchmark.model.response))
                .ok_or_else(|| MeasureError::LabelType { benchmark: name() })?;
            let map =
                ValMap::read(&scratch.join(&benchmark.dataset.map)).map_err(|source| MeasureError::Map {
                    benchmark: name(),
                    source,
                })?;
            let entries = accuracy_file(log).map_err(|source| MeasureError::Open {
                path: log.to_owned(),
                source,
            })?;
            let top1 = top1(entries, &map, label_type).map_err(|source| MeasureError::Log {
                path: log.to_owned(),
                source,
            })?;
            Ok(MeasuredAccuracy {
                top1,
                target: benchmark.accuracy.target(),
            })
        }
    }
}
