//! Prints runs that were waited for: first why runs failed or were aborted, then the table, the results of audits, and why a run is not good.

use std::io;

use super::{
    Context,
    context::{Format, say},
    run_document::document,
};
use crate::{
    store::RunRow,
    tables::{self, run_text},
};

/// Prints the runs, and returns whether all are good. `replaced` are earlier attempts, which only the JSON form has.
///
/// # Errors
/// Returns an error when standard output cannot be written.
pub(super) fn report(rows: &[RunRow], replaced: &[RunRow], context: &Context) -> io::Result<bool> {
    let documents: Vec<_> = rows.iter().map(document).collect();
    let replaced: Vec<_> = replaced.iter().map(document).collect();
    let printed = serde_json::json!({ "runs": documents, "replaced": replaced });
    let is_text = context.format == Format::Text;
    for row in rows.iter().filter(|row| is_text && !run_text::has_result(row)) {
        say(&tables::why_not(row))?;
    }
    context.print(&printed, || tables::runs(rows))?;
    for row in rows.iter().filter(|row| is_text && run_text::has_result(row)) {
        if let Some(audit) = tables::audit(row) {
            say(&audit)?;
        }
        if !row.is_good() {
            say(&tables::why_not(row))?;
        }
    }
    Ok(rows.iter().all(RunRow::is_good))
}
