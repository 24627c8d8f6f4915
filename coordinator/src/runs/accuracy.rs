//! Accuracy of logged answers as the record keeps it. The reckoning is `regatta_prep`'s.

use std::path::Path;

use regatta_prep::accuracy::{LabelType, MeasureError, MeasuredAccuracy, measure};
use regatta_types::{
    benchmark::{Benchmark, Metric},
    documents::AccuracyResult,
};

/// Judges one accuracy log. Labels lie below `scratch`, as the benchmark's file says; so does the type of the answers,
/// unless another is given.
///
/// # Errors
/// When labels or log cannot be read, or the answers hold no label.
pub(crate) fn judge(
    benchmark: &Benchmark,
    label_type: Option<LabelType>,
    scratch: &Path,
    log: &Path,
) -> Result<AccuracyResult, MeasureError> {
    let MeasuredAccuracy { top1, target } = measure(benchmark, label_type, log, scratch)?;
    if !top1.missing.is_empty() {
        tracing::warn!(missing = top1.missing.len(), log = %log.display(), "samples without an answer do not count");
    }
    let metric = match benchmark.accuracy.metric {
        Metric::Top1 => "top1",
        Metric::SquadF1 => "f1",
    };
    Ok(AccuracyResult {
        metric: metric.to_owned(),
        value: top1.percent(),
        correct: Some(top1.good as u64),
        total: top1.total as u64,
        target: Some(target),
    })
}

/// The official accuracy script's line about one log, by our own reckoning.
///
/// # Errors
/// As [`judge`].
pub(crate) fn line(
    benchmark: &Benchmark,
    label_type: Option<LabelType>,
    scratch: &Path,
    log: &Path,
) -> Result<String, MeasureError> {
    let measured = measure(benchmark, label_type, log, scratch)?;
    Ok(format!("{}\n", measured.top1))
}
