//! LoadGen's summary says the same as its detail log: people read the one, programs the other.

use std::io::BufReader;

use regatta_mllog::read::{Summary, Verdict};
use regatta_rules::Scenario;

use super::{
    figures::{ROUNDING, percentile_key},
    scenario::Case,
};
use crate::check::{finding::Findings, rules, run_log::RunLog};

/// Compares verdict, mode, scenario and metrics.
pub(super) fn check(case: &Case<'_>, directory: &str, log: &RunLog, findings: &mut Findings) {
    let path = format!("{directory}/mlperf_log_summary.txt");
    // A missing file is the file set's finding.
    let Ok(file) = case.context.tree.open(&path) else {
        return;
    };
    let summary = match Summary::read(BufReader::new(file)) {
        Ok(summary) => summary,
        Err(error) => {
            let text = format!("does not read: {error}");
            return findings.error(rules::LOG, &path, text, "put LoadGen's own summary in its place");
        }
    };
    let mend = "take both files from the same run";
    let valid = summary.verdict == Some(Verdict::Valid);
    if valid != (log.text("result_validity") == Some("VALID")) {
        let text = format!(
            "says {}, the detail log does not",
            if valid { "VALID" } else { "no VALID" }
        );
        findings.error(rules::AGREEMENT, &path, text, mend);
    }
    if summary
        .mode
        .is_some_and(|mode| Some(mode.as_str()) != log.text("effective_test_mode"))
    {
        let text = "names another mode than the detail log";
        findings.error(rules::AGREEMENT, &path, text, mend);
    }
    for metric in &summary.metrics {
        let figures = metric
            .number()
            .zip(same_figure(summary.scenario, &metric.label, log));
        if let Some((found, expected)) = figures
            && (found - expected).abs() > expected * ROUNDING
        {
            let text = format!("{} is {found}, the detail log has {expected}", metric.label);
            let place = (path.as_str(), Some(metric.line));
            findings.error(rules::AGREEMENT, place, text, mend);
        }
    }
    let scenario = summary.scenario.map(|scenario| scenario.as_str());
    if scenario.is_some() && scenario != log.text("effective_scenario") {
        findings.error(
            rules::AGREEMENT,
            &path,
            "names another scenario than the detail log",
            mend,
        );
    }
}

/// The detail log's figure of the summary's metric; `None` for metrics that only some LoadGens write.
fn same_figure(scenario: Option<Scenario>, label: &str, log: &RunLog) -> Option<f64> {
    if label == "Samples per second" {
        return log.number("result_samples_per_second");
    }
    // `90th` in older LoadGens, `90.0th` since.
    let percent = label.strip_suffix("th percentile latency (ns)")?;
    let share = percent.parse::<f64>().ok()? / 100.0;
    log.number(&percentile_key(scenario?, share))
}
