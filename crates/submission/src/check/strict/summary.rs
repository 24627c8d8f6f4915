//! LoadGen's summary says the same as its detail log: people read the one, programs the other.

use std::io::BufReader;

use regatta_mllog::read::{Summary, Verdict};

use super::scenario::Case;
use crate::check::{finding::Findings, rules, run_log::RunLog};

/// Compares verdict and scenario.
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
