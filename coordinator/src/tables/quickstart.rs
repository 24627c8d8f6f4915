//! The quickstart's table: what each run measured, and whether it arrived.

use comfy_table::Cell;

use super::{right, table, words};
use crate::store::RunRow;

/// What was found of a run's files on both disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// Whether evidence, coordinator and device agree on every one.
    pub(crate) equal: bool,
}

/// One line per run.
pub(crate) fn quickstart(rows: &[(RunRow, Comparison)]) -> String {
    let mut table = table([
        "scenario",
        "mode",
        "LoadGen's metric",
        "value",
        "result",
        "accuracy",
        "samples",
        "delivered",
        "hash equal",
    ]);
    for (row, comparison) in rows {
        let outcome = row.outcome.clone().unwrap_or_default();
        table.add_row([
            Cell::new(row.scenario),
            Cell::new(row.mode),
            Cell::new(outcome.metric.as_ref().map_or("-", |metric| metric.name.as_str())),
            right(
                outcome
                    .metric
                    .as_ref()
                    .map_or_else(|| "-".to_owned(), words::value),
            ),
            Cell::new(if row.state.phase.is_final() && row.state.reason.is_some() {
                row.state.phase.to_string()
            } else {
                words::verdict(&outcome).to_owned()
            }),
            right(
                outcome
                    .accuracy
                    .as_ref()
                    .map_or_else(|| "-".to_owned(), words::accuracy),
            ),
            right(
                outcome
                    .samples
                    .map_or_else(|| "-".to_owned(), |samples| samples.to_string()),
            ),
            right(words::bytes(outcome.bytes)),
            Cell::new(if comparison.equal { "yes" } else { "NO" }),
        ]);
    }
    table.trim_fmt()
}
