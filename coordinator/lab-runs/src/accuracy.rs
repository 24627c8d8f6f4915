//! Judges the accuracy of logged answers for the record. `regatta_accuracy` computes the metric.

use std::path::Path;

use regatta_accuracy::{
    AccuracyFigure, LabelType, MeasureError, MeasuredAccuracy, measure, measure_by_script,
};
use regatta_types::{
    benchmark::{AccuracyMetric, Benchmark},
    documents::{AccuracyResult, FurtherFigure},
};

/// Judges one accuracy log. The labels are below `scratch`, at the benchmark file's path. The file also has the type of the answers,
/// unless `label_type` overrides it.
///
/// # Errors
/// Returns an error when labels or log cannot be read, or when the answers contain no label.
pub fn judge(
    benchmark: &Benchmark,
    label_type: Option<LabelType>,
    scratch: &Path,
    log: &Path,
) -> Result<AccuracyResult, MeasureError> {
    let MeasuredAccuracy {
        figure,
        target,
        missing,
        different,
        is_padded,
        side: _,
    } = measure(benchmark, label_type, log, scratch)?;
    if missing > 0 {
        tracing::warn!(missing, log = %log.display(), "samples have no response");
    }
    if different > 0 {
        tracing::warn!(different, log = %log.display(), "samples have several responses that differ");
    } else if figure.duplicates() > 0 && !is_padded {
        tracing::warn!(duplicates = figure.duplicates(), log = %log.display(), "samples have several responses");
    }
    if let Some(what) = figure.not_finite() {
        tracing::warn!(log = %log.display(), "{what}; they count as in the reference script");
    }
    Ok(result(benchmark, target, missing, &figure))
}

/// Judges one accuracy log with the script of a benchmark's file, which must be the user's own.
///
/// # Errors
/// Returns an error when the script fails or prints no figure, or when the log cannot be read.
pub fn judge_by_script(
    benchmark: &Benchmark,
    scratch: &Path,
    log: &Path,
) -> Result<AccuracyResult, MeasureError> {
    let MeasuredAccuracy {
        figure,
        target,
        missing,
        ..
    } = measure_by_script(benchmark, log, scratch)?;
    Ok(result(benchmark, target, missing, &figure))
}

fn result(benchmark: &Benchmark, target: f64, missing: usize, figure: &AccuracyFigure) -> AccuracyResult {
    let metric = match benchmark.accuracy.metric {
        AccuracyMetric::Top1 => "top1",
        AccuracyMetric::SquadF1 => "f1",
        AccuracyMetric::Wer | AccuracyMetric::EnglishWer => AccuracyResult::WORD_ACCURACY,
        other => other.official_name(),
    };
    AccuracyResult {
        metric: metric.to_owned(),
        value: figure.value(),
        correct: figure.correct().map(|correct| correct as u64),
        total: figure.total() as u64,
        missing: missing as u64,
        duplicates: figure.duplicates() as u64,
        target: Some(target),
        side: benchmark.accuracy.side(),
        classes: figure.classes(),
        further: figure
            .further()
            .into_iter()
            .map(|(name, value)| FurtherFigure::new(name, value, &benchmark.accuracy.further))
            .collect(),
    }
}

/// Returns the line of the official accuracy script for one log, computed by Regatta.
///
/// # Errors
/// Returns the same errors as [`judge`].
pub fn line(
    benchmark: &Benchmark,
    label_type: Option<LabelType>,
    scratch: &Path,
    log: &Path,
) -> Result<String, MeasureError> {
    let measured = measure(benchmark, label_type, log, scratch)?;
    Ok(format!("{}\n", measured.figure))
}
