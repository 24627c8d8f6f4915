//! The quickstart's tables: each run's figure and whether its files are equal everywhere, and the rules that the rehearsal does not meet.

use regatta_types::Mode;
use serde::Serialize;

use super::{cell, right, table};
use regatta_lab_store::RunRow;
use regatta_lab_views::wording::run_text;

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
    pub(crate) findings: usize,
    /// The reason why no rehearsal can meet it. `None` if one should.
    pub(crate) expected: Option<String>,
    /// The path and text of the first finding.
    pub(crate) first: String,
}

/// Formats one line per run, within 80 columns.
pub(crate) fn quickstart(rows: &[(RunRow, Comparison)]) -> String {
    let mut table = table(["scenario", "mode", "state", "result", "samples", "hashes"]);
    for (row, comparison) in rows {
        let outcome = row.outcome.clone().unwrap_or_default();
        let samples = outcome.judgement.samples.map(|samples| samples.to_string());
        table.add_row([
            cell(row.scenario),
            cell(mode(row)),
            cell(run_text::state(row)),
            right(result(row).unwrap_or_default()),
            right(samples.unwrap_or_default()),
            cell(if comparison.equal { "equal" } else { "DIFFER" }),
        ]);
    }
    table.trim_fmt()
}

/// Returns the run's mode as one word, or its audit.
fn mode(row: &RunRow) -> String {
    match (&row.draft.spec.audit, row.mode) {
        (None, Mode::PerformanceOnly) => "performance".to_owned(),
        (None, Mode::AccuracyOnly) => "accuracy".to_owned(),
        _ => run_text::mode(row),
    }
}

/// Returns the figure of a performance run, or the accuracy of the responses.
fn result(row: &RunRow) -> Option<String> {
    run_text::figure(row).or_else(|| run_text::accuracy(row))
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
