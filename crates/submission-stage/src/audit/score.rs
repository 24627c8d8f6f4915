//! The score of a performance run as the official scripts read it, from the summary or from the detail log.
//!
//! The scripts compare prefixes of lines, use the text after `: ` and print the score unchanged. Later lines override earlier
//! ones.

use std::path::Path;

use regatta_catalogue::procedures::{Audit, ScoreSource};
use regatta_mllog::read::{detail_file, file_name};

use super::{AuditError, python::float_repr};
use regatta_submission_check::files::read_small;

/// The largest summary that is read, in bytes.
const MAX_SUMMARY: u64 = 16 << 20;

/// The score of a run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Score {
    /// LoadGen's name of the scenario; empty if the summary has none.
    pub(super) scenario: String,
    pub(super) value: f64,
    /// The value as the script prints it.
    pub(super) printed: String,
    /// Server's latency limit in nanoseconds, if the script compares it.
    pub(super) target_latency: Option<u64>,
}

/// Selects one of the two runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    Reference,
    Test,
}

/// The message with which the script refuses a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal(pub(super) String);

/// A score, or the script's refusal.
pub(super) type Scored = Result<Score, Refusal>;

/// Reads the score of the run whose logs are in `run`. Appends the lines that the script prints to `printed`.
pub(super) fn read(
    rule: &Audit,
    run: &Path,
    which: Which,
    printed: &mut String,
) -> Result<Scored, AuditError> {
    match rule.scores {
        ScoreSource::Summary => from_summary(rule, &run.join(file_name::SUMMARY), which, printed),
        ScoreSource::Detail => from_detail(&run.join(file_name::DETAIL)),
    }
}

fn from_summary(rule: &Audit, path: &Path, which: Which, printed: &mut String) -> Result<Scored, AuditError> {
    let text =
        String::from_utf8(read_small(path, MAX_SUMMARY)?).map_err(|source| AuditError::SummaryText {
            path: path.to_owned(),
            source,
        })?;
    let mut score = Score {
        scenario: String::new(),
        value: 0.0,
        printed: "0".to_owned(),
        target_latency: None,
    };
    for (index, line) in text.lines().enumerate() {
        let fault = || AuditError::SummaryLine {
            path: path.to_owned(),
            line: index + 1,
        };
        let value = || {
            line.split_once(": ")
                .map(|(_, value)| value.trim())
                .ok_or_else(fault)
        };
        if line.starts_with("Scenario") {
            value()?.clone_into(&mut score.scenario);
        } else if is_score(&score.scenario, line, rule) {
            value()?.clone_into(&mut score.printed);
            score.value = score.printed.parse().map_err(|_| fault())?;
            if rule.latency_as_rate && score.scenario.ends_with("Stream") {
                if score.value == 0.0 {
                    return Err(fault());
                }
                score.value = 1e9 / score.value;
                score.printed = float_repr(score.value);
            }
        } else if line.starts_with("Result is") {
            if value()? == "INVALID" {
                let run = match which {
                    Which::Reference => "Reference",
                    Which::Test => "Test",
                };
                return Ok(Err(Refusal(format!("TEST FAIL: {run} results are invalid"))));
            }
        } else if let Some(count) = errors(line) {
            let run = match which {
                Which::Reference => "reference",
                Which::Test => "test",
            };
            printed.push_str(&format!("WARNING: {count} ERROR reported in {run} results\n"));
        }
    }
    Ok(Ok(score))
}

/// Returns whether a line of the summary has the scenario's score.
fn is_score(scenario: &str, line: &str, rule: &Audit) -> bool {
    let early_stopping = |percentiles: &[String]| {
        percentiles
            .iter()
            .flat_map(|percentile| spellings(percentile))
            .any(|percentile| line.contains(&format!("Early stopping {percentile} percentile estimate")))
    };
    match scenario {
        "SingleStream" => early_stopping(&rule.single_stream_percentiles),
        "MultiStream" => early_stopping(&rule.multi_stream_percentiles),
        "Server" => line.starts_with("Completed samples per second"),
        "Offline" => line.starts_with("Samples per second"),
        _ => false,
    }
}

/// Returns both spellings of a percentile. LoadGen printed `90th` up to round v5.0, and has printed `90.0th` since. The scripts of a round only read
/// the spelling of its LoadGen, and would otherwise compare with 0.
fn spellings(percentile: &str) -> [String; 2] {
    let number = percentile.strip_suffix("th").unwrap_or(percentile);
    let other = match number.strip_suffix(".0") {
        Some(whole) => format!("{whole}th"),
        None if number.contains('.') => percentile.to_owned(),
        None => format!("{number}.0th"),
    };
    [percentile.to_owned(), other]
}

/// Returns the count from a line, for example `2 ERRORS encountered.`
fn errors(line: &str) -> Option<&str> {
    let (count, rest) = line.split_once(' ')?;
    let digits = !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit());
    (digits && rest.starts_with("ERROR")).then_some(count)
}

fn from_detail(path: &Path) -> Result<Scored, AuditError> {
    let log = detail_file(path)?;
    let missing = |key| AuditError::DetailKey {
        path: path.to_owned(),
        key,
    };
    const SCENARIO: &str = "effective_scenario";
    let scenario = log.value(SCENARIO).and_then(|value| value.as_str());
    let key = match scenario {
        Some("Offline") => "result_samples_per_second",
        Some("SingleStream") => "early_stopping_latency_ss",
        Some("MultiStream") => "early_stopping_latency_ms",
        Some("Server") => "result_completed_samples_per_sec",
        _ => return Err(missing(SCENARIO)),
    };
    let value = log
        .value(key)
        .and_then(|value| value.as_f64().or_else(|| value.as_str()?.trim().parse().ok()))
        .ok_or_else(|| missing(key))?;
    let validity = log.value("result_validity").and_then(|value| value.as_str());
    if validity != Some("VALID") {
        let text = format!("TEST FAIL: Invalid results in {}", path.display());
        return Ok(Err(Refusal(text)));
    }
    let errors = match log.value("num_errors") {
        Some(count) => count.as_u64().unwrap_or(u64::MAX),
        None => log.errors().count() as u64,
    };
    if errors > 0 {
        // The script ends with a traceback here.
        let text = format!("TEST FAIL: {errors} errors reported in {}", path.display());
        return Ok(Err(Refusal(text)));
    }
    let target_latency = match scenario {
        Some("Server") => log
            .value("effective_target_latency_ns")
            .and_then(|value| value.as_u64()),
        _ => None,
    };
    Ok(Ok(Score {
        scenario: scenario.unwrap_or_default().to_owned(),
        value,
        printed: float_repr(value),
        target_latency,
    }))
}
