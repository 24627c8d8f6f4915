//! TEST01's part III: where responses differ, the accuracies of the same samples may not. The accuracy run's log is cut
//! down to the samples that the audit's run logged; both logs go to the benchmark's accuracy script, whose own output is
//! put where the checker looks for it.
//!
//! What the script is, and how it is run, is the caller's affair.

use std::{error::Error, fs, path::Path};

use regatta_config::round::{AccuracyForms, Round};
use regatta_types::{
    benchmark::{Benchmark, Metric},
    documents::AccuracyDelta,
};

use super::{AuditError, Request, write_baseline};
use crate::{
    check::accuracy_metric,
    files::{At, replace},
};

/// A metric whose values may lie so far apart.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// The metric's official name, such as `acc`.
    pub metric: String,
    /// How far apart, in percent.
    pub percent: f64,
}

/// What the round asks of the two accuracies of a benchmark that it has, by one of its names.
#[must_use]
pub fn limits_by_name(round: &Round, name: &str) -> Option<Vec<Limit>> {
    let (official, rules) = round.submission.rules_of(name)?;
    let limit = |metric: &str| Limit {
        metric: metric.to_owned(),
        percent: rules.delta_percent(official, metric),
    };
    Some(rules.accuracy.iter().map(|bound| limit(&bound.metric)).collect())
}

/// The same by a benchmark's file. A benchmark that the round does not have is judged by its own metric and the general
/// limit.
#[must_use]
pub fn limits(round: &Round, benchmark: &Benchmark) -> Vec<Limit> {
    let of_round = round
        .rules_of(benchmark)
        .and_then(|(name, _)| limits_by_name(round, name));
    of_round.unwrap_or_else(|| {
        let metric = match benchmark.accuracy.metric {
            Metric::Top1 => "acc",
            Metric::SquadF1 => "F1",
        };
        vec![Limit {
            metric: metric.to_owned(),
            percent: 1.0,
        }]
    })
}

/// An accuracy script: takes an accuracy log, gives what the script prints.
pub type AccuracyScript<'a> = dyn FnMut(&Path) -> Result<String, Box<dyn Error + Send + Sync>> + 'a;

/// Compares accuracies for an audit that [`super::verify`] has written. The baseline log is written to `baseline`, which
/// is no part of a submission; `accuracy/` of the audit's directory gets `baseline_accuracy.txt`,
/// `compliance_accuracy.txt`, and `accuracy.txt` for the hash that truncation appends.
///
/// # Errors
/// When a log cannot be read, the script fails, or a file cannot be written.
pub fn compare_accuracies(
    request: &Request<'_>,
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

/// Judges what a script printed about the baseline and about the audit's log.
#[must_use]
pub fn judge(round: &Round, limits: &[Limit], baseline: &str, audited: &str) -> Vec<AccuracyDelta> {
    let forms = round.submission.accuracy_forms;
    let delta = |limit: &Limit| delta(limit, value(limit, forms, baseline), value(limit, forms, audited));
    limits.iter().map(delta).collect()
}

/// The last value that a text gives; the checkers take zero for none.
fn value(limit: &Limit, forms: AccuracyForms, text: &str) -> Option<f64> {
    let last = text
        .lines()
        .rev()
        .find_map(|line| accuracy_metric(&limit.metric, forms, line))?;
    last.parse().ok().filter(|value| *value != 0.0)
}

/// `|1 - baseline / compliance|` in percent, as the checkers reckon it.
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
