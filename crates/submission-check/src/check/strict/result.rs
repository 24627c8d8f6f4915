//! The result of a scenario: measured, or inferred where the rules allow it.

use regatta_catalogue::round::SubmittedScenario;
use regatta_types::Scenario;

use super::case::Case;
use crate::check::{
    MULTISTREAM_SAMPLES,
    finding::{Findings, Severity},
    rules,
    run_log::RunLog,
};

const NANOSECONDS_PER_MILLISECOND: f64 = 1e6;
const MILLISECONDS_PER_SECOND: f64 = 1e3;

/// Returns the result from the run's log. If the log has no valid result, adds a finding and returns `None`.
pub(super) fn measured(
    case: &Case<'_>,
    directory: &str,
    log: &RunLog,
    findings: &mut Findings,
) -> Option<f64> {
    let path = format!("{directory}/mlperf_log_detail.txt");
    let from = log
        .text("effective_scenario")
        .and_then(|name| name.parse::<Scenario>().ok());
    let Some(from) = from else {
        let fix = "put the log of this scenario's run in its place";
        findings.error(rules::RESULT, &path, "effective_scenario is missing or none", fix);
        return None;
    };
    if from != case.scenario.run() {
        return inferred(case, &path, log, from, findings);
    }
    let key = case.context.round.submission.result_key(Some(case.rules), from)?;
    let value = positive(log, key, &path, findings)?;
    let streams = matches!(from, Scenario::SingleStream | Scenario::MultiStream);
    let in_seconds = case.rules.latency_in_seconds;
    Some(match streams {
        true if in_seconds => value / NANOSECONDS_PER_MILLISECOND / MILLISECONDS_PER_SECOND,
        true => value / NANOSECONDS_PER_MILLISECOND,
        false => value,
    })
}

fn positive(log: &RunLog, key: &str, path: &str, findings: &mut Findings) -> Option<f64> {
    let value = log.number(key).filter(|value| value.is_finite() && *value > 0.0);
    if value.is_none() {
        let text = format!("{key} is missing or no positive number");
        findings.error(rules::RESULT, (path, log.line(key)), text, "repeat the run");
    }
    value
}

fn inferred(
    case: &Case<'_>,
    path: &str,
    log: &RunLog,
    from: Scenario,
    findings: &mut Findings,
) -> Option<f64> {
    let to = case.scenario;
    let line = log.line("effective_scenario");
    if !case.job.description.kind.contains("edge") {
        let fix = "run the scenario: only results of edge systems may be inferred";
        findings.error(
            rules::INFERRED,
            (path, line),
            format!("a run of {from} is used for {to}"),
            fix,
        );
        return None;
    }
    let value = match (from, to) {
        (Scenario::SingleStream, SubmittedScenario::Offline) => {
            positive(log, "result_qps_without_loadgen_overhead", path, findings)?
        }
        (Scenario::MultiStream, SubmittedScenario::Offline) => {
            let samples = positive(log, "effective_samples_per_query", path, findings)?;
            let latency = positive(log, "result_mean_query_latency_ns", path, findings)?;
            samples * 1000.0 / (latency / NANOSECONDS_PER_MILLISECOND)
        }
        (Scenario::SingleStream, SubmittedScenario::MultiStream) => {
            let estimate = positive(log, "early_stopping_latency_ms", path, findings)?;
            estimate * MULTISTREAM_SAMPLES / NANOSECONDS_PER_MILLISECOND
        }
        _ => {
            let text = format!("{to} cannot be inferred from a run of {from}");
            findings.error(rules::INFERRED, (path, line), text, format!("run {to}"));
            return None;
        }
    };
    let text = format!("{to} is inferred from a run of {from}");
    findings.add(
        Severity::Note,
        rules::INFERRED,
        (path, line),
        text,
        "allowed for edge systems",
    );
    Some(value)
}
