//! TEST01's part III: if responses differ, the accuracies of the same samples must agree.
//!
//! The accuracy run's log is reduced to the samples that the audit's run logged. The benchmark's accuracy script reads both logs.
//! Its output is written where the checker expects it.
//!
//! The caller chooses the script and runs it.

use std::{error::Error, fs, path::Path};

use regatta_catalogue::round::{AccuracyForms, Round};
use regatta_types::{benchmark::Benchmark, documents::AccuracyDelta};

use super::{AuditError, AuditRequest, write_baseline};
use regatta_submission_check::{
    check::accuracy_metric,
    files::{At, replace},
};

/// The allowed difference between two values of a metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// The metric's official name, for example `acc`.
    pub metric: String,
    /// The allowed difference in percent.
    pub percent: f64,
}

/// Returns the round's limits for a benchmark by one of its names. Returns `None` if the round does not have it.
#[must_use]
pub fn limits_by_name(round: &Round, name: &str) -> Option<Vec<Limit>> {
    let (official, rules) = round.submission.rules_of(name)?;
    let limit = |metric: &str| Limit {
        metric: metric.to_owned(),
        percent: rules.delta_percent(official, metric),
    };
    Some(rules.accuracy.iter().map(|bound| limit(&bound.metric)).collect())
}

/// Returns the limits for a benchmark from its file.
///
/// A benchmark that the round does not have gets its own metric and the general limit of 1 %.
#[must_use]
pub fn limits(round: &Round, benchmark: &Benchmark) -> Vec<Limit> {
    let of_round = round
        .rules_of(benchmark)
        .and_then(|(name, _)| limits_by_name(round, name));
    of_round.unwrap_or_else(|| {
        let metric = benchmark.accuracy.metric.official_name();
        vec![Limit {
            metric: metric.to_owned(),
            percent: 1.0,
        }]
    })
}

/// An accuracy script: reads an accuracy log and returns its output.
pub type AccuracyScript<'a> = dyn FnMut(&Path) -> Result<String, Box<dyn Error + Send + Sync>> + 'a;

/// Compares accuracies for an audit that [`super::verify`] has written.
///
/// The baseline log is written to `baseline`, which is not part of a submission. Three files are written to `accuracy/` of the
/// audit's directory: `baseline_accuracy.txt`, `compliance_accuracy.txt`, and `accuracy.txt` for the hash that truncation
/// appends.
///
/// # Errors
/// Returns an error if a log cannot be read, the script fails or a file cannot be written.
pub fn compare_accuracies(
    request: &AuditRequest<'_>,
    limits: &[Limit],
    baseline: &Path,
    script: &mut AccuracyScript<'_>,
) -> Result<Vec<AccuracyDelta>, AuditError> {
    let audited = request.compliance_log();
    write_baseline(&request.accuracy_log(), &audited, baseline)?;
    let mut run = |log: &Path| {
        script(log).map_err(|source| AuditError::AccuracyScript {
            log: log.to_owned(),
            source,
        })
    };
    let (of_baseline, of_audit) = (run(baseline)?, run(&audited)?);
    let directory = request.directory().join("accuracy");
    fs::create_dir_all(&directory).at("create", &directory)?;
    for (name, text) in [
        ("baseline_accuracy.txt", &of_baseline),
        ("compliance_accuracy.txt", &of_audit),
        ("accuracy.txt", &of_audit),
    ] {
        replace(&directory.join(name), text.as_bytes())?;
    }
    Ok(judge(request.round, limits, &of_baseline, &of_audit))
}

/// Compares the script's outputs for the baseline and for the audit's log.
#[must_use]
pub fn judge(round: &Round, limits: &[Limit], baseline: &str, audited: &str) -> Vec<AccuracyDelta> {
    let forms = round.submission.accuracy_forms;
    let delta = |limit: &Limit| delta(limit, value(limit, forms, baseline), value(limit, forms, audited));
    limits.iter().map(delta).collect()
}

/// Returns the last value in a text. The checkers treat zero as a missing value.
fn value(limit: &Limit, forms: AccuracyForms, text: &str) -> Option<f64> {
    let last = text
        .lines()
        .rev()
        .find_map(|line| accuracy_metric(&limit.metric, forms, line))?;
    last.parse().ok().filter(|value| *value != 0.0)
}

/// Computes `|1 - baseline / compliance|` in percent, as the checkers do.
fn delta(limit: &Limit, baseline: Option<f64>, audited: Option<f64>) -> AccuracyDelta {
    let apart = baseline.zip(audited).map(|(baseline, audited)| {
        let apart: f64 = 1.0 - baseline / audited;
        apart.abs() * 100.0
    });
    AccuracyDelta {
        metric: limit.metric.clone(),
        baseline,
        audited,
        limit_percent: limit.percent,
        passed: apart.is_some_and(|apart| apart <= limit.percent),
    }
}
