//! A run's outcome, read from the logs that LoadGen wrote. No value is recomputed.

use std::{
    error::Error,
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
    path::Path,
};

use regatta_loadgen::{
    effective::EffectiveSettings,
    load_gen::{LoadgenError, LoadgenIdentity},
    outcome::{Issued, LatencyStats, Metric, Outcome, Performance},
    request::RunRequest,
    timing::Timing,
};
use regatta_loadgen_conf::TestSettings;
use regatta_mllog::read::{DetailLog, Summary, Value, Verdict, detail_file, summary_file};
use regatta_types::Scenario;

/// The facts of a run that its logs do not contain.
pub(crate) struct Facts<'a> {
    pub(crate) request: &'a RunRequest,
    pub(crate) identity: LoadgenIdentity,
    pub(crate) requested: TestSettings,
    pub(crate) effective: EffectiveSettings,
    pub(crate) warnings: Vec<String>,
    pub(crate) timing: Option<Timing>,
    pub(crate) accuracy: Option<Issued>,
    pub(crate) performance: Issued,
    pub(crate) faults: Vec<String>,
    /// Whether LoadGen ended by itself.
    pub(crate) ended: bool,
}

/// Reads the logs.
pub(crate) fn read(facts: Facts<'_>) -> Result<Outcome, LoadgenError> {
    let logs = &facts.request.logs;
    let (summary_path, detail_path) = (logs.path("summary"), logs.path("detail"));
    // An abandoned run has no summary, and its logs end where it was abandoned.
    let summary = if facts.ended {
        check_accuracy_log(&logs.path("accuracy"))?;
        Some(summary_file(&summary_path).map_err(|e| unreadable(&summary_path, e))?)
    } else {
        None
    };
    let detail = match detail_file(&detail_path) {
        Err(error) if facts.ended => return Err(unreadable(&detail_path, error)),
        read => read.unwrap_or_default(),
    };
    let verdict = summary
        .as_ref()
        .and_then(|s| s.verdict)
        .map(|v| v == Verdict::Valid);
    let valid = if facts.faults.is_empty() {
        verdict
    } else {
        Some(false)
    };
    let mut reasons = Vec::new();
    if let Some(summary) = &summary {
        reasons.extend(summary.recommendations.iter().cloned());
    }
    reasons.extend(facts.faults.iter().cloned());
    let refused = facts
        .timing
        .iter()
        .flat_map(|timing| timing.refused.iter().cloned());
    let warnings = facts.warnings.iter().cloned().chain(refused).collect();
    let kinds = ["summary", "detail", "accuracy", "trace"];
    let shown = if logs.trace { kinds.len() } else { kinds.len() - 1 };
    Ok(Outcome {
        performance: summary
            .and_then(|s| performance(&s, &detail, facts.performance, facts.requested.scenario)),
        identity: facts.identity,
        requested: facts.requested,
        effective: facts.effective,
        accuracy: facts.accuracy,
        valid,
        reasons,
        faults: facts.faults,
        warnings,
        timing: facts.timing,
        error_lines: detail.errors().count() as u64,
        log_files: kinds[..shown].iter().map(|kind| logs.path(kind)).collect(),
    })
}

/// Returns the measurement; `None` when the mode has none or it has no results.
fn performance(
    summary: &Summary,
    detail: &DetailLog,
    issued: Issued,
    scenario: Scenario,
) -> Option<Performance> {
    let headline = summary.metrics.first()?;
    let flag = |key: &str| detail.value(key).and_then(Value::as_bool);
    let estimate = |key: &str| detail.value(key).and_then(Value::as_f64).map(to_ns);
    let early_stopping: Vec<_> = summary
        .early_stopping
        .iter()
        .flat_map(|paragraph| paragraph.lines.iter().map(String::as_str))
        .collect();
    Some(Performance {
        issued,
        metric: Metric {
            name: headline.label.clone(),
            text: headline.value.clone(),
            value: headline.number()?,
            unit: match scenario {
                Scenario::SingleStream | Scenario::MultiStream => "ns",
                Scenario::Server => "queries/s",
                Scenario::Offline => "samples/s",
            },
        },
        performance_constraints_met: flag("result_perf_constraints_met"),
        min_duration_met: flag("result_min_duration_met")?,
        min_queries_met: flag("result_min_queries_met")?,
        early_stopping_met: flag("early_stopping_met").unwrap_or(true),
        early_stopping: early_stopping.join("\n"),
        early_stopping_latency_ss: estimate("early_stopping_latency_ss"),
        early_stopping_latency_ms: estimate("early_stopping_latency_ms"),
        latency: latency(summary),
    })
}

fn latency(summary: &Summary) -> LatencyStats {
    let value = |label: &str| {
        summary
            .statistic(label)
            .and_then(|e| e.value.parse().ok())
            .unwrap_or_default()
    };
    let percentile = |entry: &regatta_mllog::read::SummaryEntry| {
        let percent: f64 = entry
            .label
            .strip_suffix(" percentile latency (ns)")?
            .trim()
            .parse()
            .ok()?;
        Some((percent / 100.0, entry.value.parse().ok()?))
    };
    LatencyStats {
        min: value("Min latency (ns)"),
        max: value("Max latency (ns)"),
        mean: value("Mean latency (ns)"),
        percentiles: summary.statistics.iter().filter_map(percentile).collect(),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "nanoseconds that LoadGen wrote as an integer"
)]
fn to_ns(value: f64) -> i64 {
    value as i64
}

/// Checks that the accuracy log is complete. LoadGen does not notice a full disk; an unclosed JSON array shows it.
fn check_accuracy_log(path: &Path) -> Result<(), LoadgenError> {
    let failed = |source| LoadgenError::Log {
        path: path.to_owned(),
        source,
    };
    let mut file = File::open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(16)))
        .map_err(failed)?;
    let mut tail = Vec::new();
    file.take(16).read_to_end(&mut tail).map_err(failed)?;
    if tail.trim_ascii_end().ends_with(b"]") {
        return Ok(());
    }
    Err(failed(io::Error::other(
        "LoadGen did not write it to its end; is the disk full?",
    )))
}

fn unreadable(path: &Path, error: impl Error + Send + Sync + 'static) -> LoadgenError {
    LoadgenError::Log {
        path: path.to_owned(),
        source: io::Error::other(error),
    }
}
