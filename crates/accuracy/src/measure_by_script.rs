//! Computes the accuracy of a benchmark's run with the script of the benchmark's file.

use std::path::Path;

use regatta_fsutil::regular_file;
use regatta_mllog::read::ResponseCount;
use regatta_types::benchmark::{AccuracyMetric, Benchmark};

use crate::{
    measure::{AccuracyFigure, MeasuredAccuracy},
    measure_error::MeasureError,
    own_script::{ScriptError, figure},
    score::Score,
};

/// Computes the accuracy of the log `log` by the command of a benchmark's file, which must be the user's own.
///
/// # Errors
/// [`MeasureError::Script`] when the command fails or prints no figure.
pub fn measure_by_script(
    benchmark: &Benchmark,
    log: &Path,
    scratch: &Path,
) -> Result<MeasuredAccuracy, MeasureError> {
    let failed = |source: ScriptError| MeasureError::Script {
        benchmark: benchmark.name.clone(),
        source,
    };
    let opened = regular_file::open(log).map_err(|error| failed(error.into()))?;
    let total = benchmark.dataset.total_samples;
    let count = ResponseCount::read(opened, total).map_err(|error| failed(error.into()))?;
    let value = figure(&benchmark.accuracy.script, log, scratch).map_err(failed)?;
    Ok(MeasuredAccuracy {
        target: benchmark.accuracy.target(),
        side: benchmark.accuracy.side(),
        missing: count.missing,
        different: 0,
        is_padded: false,
        figure: AccuracyFigure::Score(Score {
            name: AccuracyMetric::Script.official_name(),
            value,
            correct: None,
            total: count.answered,
            duplicates: count.duplicates,
            missing: Vec::new(),
        }),
    })
}
