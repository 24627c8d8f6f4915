//! Checks that LoadGen's summary agrees with its detail log. People read the summary; programs read the detail log.

use std::io::BufReader;

use regatta_mllog::{
    read::{EarlyStopping, Summary, SummaryEntry, Value, Verdict},
    result_keys::RateKey,
};
use regatta_types::Scenario;

use super::{
    case::Case,
    figures::paragraph_numbers,
    logged_run::{LoggedRun, SIX_DIGITS},
};
use crate::check::{finding::Findings, line_bytes::LineBytes, rules, run_log::RunLog};

const FIX: &str = "take both files from the same run";
/// The tolerance for rates with two decimal places.
const TWO_PLACES: f64 = 0.0051;

/// Compares the summary in `directory` with the detail log beside it.
pub(super) fn check(case: &Case<'_>, directory: &str, log: &RunLog, findings: &mut Findings) {
    let path = format!("{directory}/mlperf_log_summary.txt");
    // The file set check reports a missing file.
    let tree = case.context.tree;
    let (Ok(bytes), Ok(file)) = (tree.open(&path), tree.open(&path)) else {
        return;
    };
    LineBytes::read(bytes).report(&path, findings);
    let summary = match Summary::read(BufReader::new(file)) {
        Ok(summary) => summary,
        Err(error) => {
            let text = format!("cannot be parsed: {error}");
            return findings.error(rules::LOG, &path, text, "put LoadGen's summary in its place");
        }
    };
    let run = LoggedRun {
        case,
        log,
        path: &path,
    };
    let performance = log.text("effective_test_mode") == Some("PerformanceOnly");
    if performance || summary.verdict.is_some() {
        verdict(&run, &summary, findings);
        figures(&run, &summary, findings);
    }
    if summary.errors.is_some_and(|errors| errors != log.error_count) {
        let text = format!(
            "counts {} errors, the detail log has {}",
            summary.errors.unwrap_or_default(),
            log.error_count
        );
        findings.error(rules::AGREEMENT, &path, text, FIX);
    }
}

fn verdict(run: &LoggedRun<'_>, summary: &Summary, findings: &mut Findings) {
    let log = run.log;
    let valid = summary.verdict == Some(Verdict::Valid);
    if valid != (log.text("result_validity") == Some("VALID")) {
        let verdict = if valid { "VALID" } else { "no VALID" };
        let text = format!("has {verdict}, but the detail log differs");
        findings.error(rules::AGREEMENT, run.path, text, FIX);
    }
    for (what, stated, key) in [
        (
            "mode",
            summary.mode.map(|mode| mode.as_str()),
            "effective_test_mode",
        ),
        (
            "scenario",
            summary.scenario.map(|scenario| scenario.as_str()),
            "effective_scenario",
        ),
        ("system under test", summary.sut_name.as_deref(), "sut_name"),
    ] {
        let logged = log.text(key).map(str::trim);
        if stated.is_some_and(|stated| Some(stated) != logged) {
            let text = format!("names another {what} than the detail log");
            findings.error(rules::AGREEMENT, run.path, text, FIX);
        }
    }
    for requirement in &summary.requirements {
        let key = match requirement.name.as_str() {
            "Performance constraints" => "result_perf_constraints_met",
            "Min duration" => "result_min_duration_met",
            "Min queries" => "result_min_queries_met",
            "Early stopping" => "early_stopping_met",
            _ => continue,
        };
        if log.flag(key).is_some_and(|met| met != requirement.satisfied) {
            let text = format!("{}: differs from the detail log", requirement.name);
            findings.error(rules::AGREEMENT, (run.path, Some(requirement.line)), text, FIX);
        }
    }
    for paragraph in &summary.early_stopping {
        stopping(run, paragraph, findings);
    }
}

fn stopping(run: &LoggedRun<'_>, paragraph: &EarlyStopping, findings: &mut Findings) {
    let key = match paragraph.title.split(' ').next() {
        Some("TTFT") => "early_stopping_ttft_result",
        Some("TPOT") => "early_stopping_tpot_result",
        _ => "early_stopping_result",
    };
    let stated = paragraph.lines.join("  ");
    if let Some(logged) = run.log.text(key)
        && paragraph_numbers(logged) != paragraph_numbers(&stated)
    {
        let text = format!("{}: the detail log has other numbers", paragraph.title);
        findings.error(rules::AGREEMENT, run.path, text, FIX);
    }
}

fn figures(run: &LoggedRun<'_>, summary: &Summary, findings: &mut Findings) {
    let Some(scenario) = run.scenario() else { return };
    let results = summary.metrics.iter().chain(&summary.statistics);
    let results = results.filter_map(|entry| Some((entry, figure(scenario, &entry.label)?)));
    let parameters = summary.parameters.iter();
    let parameters = parameters.map(|entry| (entry, LoggedFigure::of(parameter(&entry.label))));
    for (entry, figure) in results.chain(parameters) {
        let Some(logged) = run.log.value(&figure.key) else {
            continue;
        };
        if !is_same(entry, logged, figure.scale) {
            let text = format!(
                "{} is {}, the detail log has {}",
                entry.label,
                entry.value,
                run.found(&figure.key)
            );
            findings.error(rules::AGREEMENT, (run.path, Some(entry.line)), text, FIX);
        }
    }
}

/// Returns whether the summary's entry equals the detail log's value, within the digits that are printed.
fn is_same(entry: &SummaryEntry, logged: &Value, scale: f64) -> bool {
    let whole = |value: &Value| match value {
        Value::Unsigned(value) => Some(i128::from(*value)),
        Value::Signed(value) => Some(i128::from(*value)),
        Value::Bool(value) => Some(i128::from(*value)),
        _ => None,
    };
    if let (Ok(stated), Some(logged)) = (entry.value.parse::<i128>(), whole(logged)) {
        return stated == logged;
    }
    let both = entry.number().zip(logged.as_f64());
    both.is_some_and(|(stated, logged)| {
        let logged = logged * scale;
        // Two equal infinite values have no finite difference.
        (stated - logged).abs() <= (logged.abs() * SIX_DIGITS).max(TWO_PLACES) || stated == logged
    })
}

/// The detail log's record of a figure.
struct LoggedFigure {
    key: String,
    /// The factor from the detail log's value to the summary's.
    scale: f64,
}

impl LoggedFigure {
    fn of(key: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            scale: 1.0,
        }
    }
}

/// Returns the record of a result or statistic, or `None` if the detail log does not have it.
fn figure(scenario: Scenario, label: &str) -> Option<LoggedFigure> {
    if let Some(rate) = RateKey::labelled(label) {
        return Some(LoggedFigure::of(rate.key));
    }
    let key = match label {
        "TPS w/ loadgen overhead" => "result_token_throughput_with_loadgen_overhead",
        "TPS w/o loadgen overhead" => {
            // The detail log states this rate per nanosecond.
            let key = "result_token_throughput".to_owned();
            return Some(LoggedFigure { key, scale: 1e9 });
        }
        _ => return latency(scenario, label).map(LoggedFigure::of),
    };
    Some(LoggedFigure::of(key))
}

/// Returns the key of a latency.
fn latency(scenario: Scenario, label: &str) -> Option<String> {
    let (which, of) = match label.split_once(" percentile ") {
        // Older LoadGens print `90th`, newer ones `90.0th`, and the statistics have `50.00`.
        Some((share, of)) => {
            let (share, first) = match share.split_once("th ") {
                Some((share, "first token")) => (share, true),
                _ => (share.trim_end_matches("th"), false),
            };
            let share: f64 = share.parse().ok()?;
            let of = if first { "first token latency (ns)" } else { of };
            (format!("{share:.2}_percentile"), of.to_ascii_lowercase())
        }
        None => {
            let (which, of) = label.split_once(' ')?;
            let which = matches!(which, "Min" | "Max" | "Mean").then(|| which.to_ascii_lowercase())?;
            (which, of.to_ascii_lowercase())
        }
    };
    let percentile = which.ends_with("percentile");
    Some(match of.as_str() {
        "latency (ns)" if scenario == Scenario::MultiStream && percentile => {
            format!("result_{which}_per_query_latency_ns")
        }
        "latency (ns)" if scenario == Scenario::MultiStream => format!("result_{which}_query_latency_ns"),
        "latency (ns)" => format!("result_{which}_latency_ns"),
        "first token latency (ns)" => format!("result_first_token_{which}_latency_ns"),
        "time to output token (ns)" | "time per output token (ns)" if percentile => {
            format!("result_time_per_output_token_{which}_ns")
        }
        "time to output token (ns)" | "time per output token (ns)" => {
            format!("result_time_to_output_token_{which}")
        }
        _ => return None,
    })
}

/// Returns the key of a parameter, for example of `min_duration (ms)`.
fn parameter(label: &str) -> String {
    let name = label.replace(" (ms)", "_ms").replace(" (ns)", "_ns");
    match name.as_str() {
        "ttft_latency_ns" => "requested_server_ttft_latency".to_owned(),
        "tpot_latency_ns" => "requested_server_tpot_latency".to_owned(),
        _ => format!("effective_{name}"),
    }
}
