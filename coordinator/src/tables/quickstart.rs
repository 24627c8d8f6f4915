//! The quickstart's tables: the figure and delivery of each run, and the rules that the rehearsal does not meet.

use serde::Serialize;

use super::{cell, right, run_text, table, words};
use crate::store::{RunOutcome, RunRow};

/// The comparison of a run's files on both disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// Whether evidence, coordinator and device agree on every file.
    pub(crate) equal: bool,
}

/// A rule that the submission tree does not meet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct UnmetRule {
    /// The rule's short name.
    pub(crate) rule: String,
    /// The number of findings.
    pub(crate) findings: usize,
    /// Why no rehearsal can meet it. `None` if one should.
    pub(crate) expected: Option<String>,
    /// The path and text of the first finding.
    pub(crate) first: String,
}

/// Formats one line per run.
pub(crate) fn quickstart(rows: &[(RunRow, Comparison)]) -> String {
    let mut table = table([
        "scenario",
        "mode",
        "state",
        "figure",
        "accuracy",
        "samples",
        "delivered",
        "hash equal",
    ]);
    for (row, comparison) in rows {
        let outcome = row.outcome.clone().unwrap_or_default();
        let samples = outcome.samples.map(|samples| samples.to_string());
        table.add_row([
            cell(row.scenario),
            cell(run_text::mode(row)),
            cell(run_text::state(row)),
            right(run_text::figure(row).unwrap_or_default()),
            right(answers(row, &outcome)),
            right(samples.unwrap_or_default()),
            right(words::bytes(outcome.bytes)),
            cell(if comparison.equal { "yes" } else { "NO" }),
        ]);
    }
    table.trim_fmt()
}

/// Formats the answers' accuracy, or whether they equal those of the accuracy run.
fn answers(row: &RunRow, outcome: &RunOutcome) -> String {
    let responses = outcome.audit.as_ref().and_then(|audit| audit.responses.as_ref());
    match (run_text::accuracy(row), responses) {
        (Some(accuracy), _) => accuracy,
        (None, Some(responses)) if responses.differing == 0 => "same".to_owned(),
        (None, Some(responses)) => format!("{} differ", responses.differing),
        (None, None) => String::new(),
    }
}

/// Formats one line per rule that a rehearsal does not meet.
pub(crate) fn rules(unmet: &[UnmetRule]) -> String {
    let mut table = table(["rule", "findings", "why"]);
    for rule in unmet {
        let why = rule
            .expected
            .clone()
            .unwrap_or_else(|| format!("NOT EXPECTED: {}", rule.first));
        table.add_row([cell(&rule.rule), right(rule.findings), cell(why)]);
    }
    table.add_row([cell("all others"), right(0), cell("hold")]);
    table.trim_fmt()
}
