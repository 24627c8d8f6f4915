//! The accuracy of a run of a benchmark, from the files where they lie, by the metric that the benchmark's file names.

use std::{
    io,
    path::{Path, PathBuf},
};

use regatta_mllog::read::accuracy_file;
use regatta_rules::benchmark::{Benchmark, Metric};

use super::{
    label::LabelType,
    top1::{AccuracyError, Top1, top1},
};
use crate::val_map::{ValMap, ValMapError};

/// What came out, beside what was to be reached.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Right answers, answers and missing ones.
    pub top1: Top1,
    /// The value to reach, in percent.
    pub target: f64,
}

impl Measured {
    /// Whether the accuracy suffices. Like the official checker this looks at the value alone; whether the run
    /// answered every sample is told by [`Top1::missing`].
    #[must_use]
    pub fn reached(&self) -> bool {
        self.top1.percent() >= self.target
    }
}

/// An accuracy that cannot be had from these files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeasureError {
    /// The benchmark's file does not say what type its responses have.
    #[error(
        "the file of benchmark {benchmark} does not say what type its responses have: name it with --dtype"
    )]
    LabelType {
        /// The benchmark.
        benchmark: String,
    },
    /// The metric is the reference script's affair.
    #[error(
        "the accuracy of benchmark {benchmark} is reckoned by the reference's {script} alone: `regatta accuracy {benchmark} --log LOG --official {script}`"
    )]
    Elsewhere {
        /// The benchmark.
        benchmark: String,
        /// The script's name.
        script: &'static str,
    },
    /// The map does not read.
    #[error("the labels of benchmark {benchmark} cannot be had: has it been prepared?")]
    Map {
        /// The benchmark.
        benchmark: String,
        /// Which file, and why.
        #[source]
        source: ValMapError,
    },
    /// The log cannot be opened.
    #[error("cannot open {path}", path = path.display())]
    Open {
        /// The log.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// The log gives no accuracy.
    #[error("{path} gives no accuracy", path = path.display())]
    Log {
        /// The log.
        path: PathBuf,
        /// Where and why.
        #[source]
        source: AccuracyError,
    },
}

/// Reckons the accuracy of the log `log` against the labels below `scratch`. `label_type` overrides what the
/// benchmark's file says of its responses.
///
/// # Errors
/// See [`MeasureError`].
pub fn measure(
    benchmark: &Benchmark,
    label_type: Option<LabelType>,
    log: &Path,
    scratch: &Path,
) -> Result<Measured, MeasureError> {
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
            Ok(Measured {
                top1,
                target: benchmark.accuracy.target(),
            })
        }
    }
}
