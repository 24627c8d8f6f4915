//! Prints runs after a wait: first the reasons of failed or aborted ones, then the table of the others. The results of audits, and why a
//! run is not good, come last.

use std::io;

use super::{
    Context,
    context::{Format, say},
};
use crate::tables;
use regatta_lab_store::RunRow;
use regatta_lab_views::{
    documents::run_document,
    wording::{self, run_text},
};

/// Prints the runs, and returns whether all are good. `replaced` are earlier attempts, which only the JSON form has.
///
/// # Errors
/// Returns an error when standard output cannot be written.
pub(super) fn report(rows: &[RunRow], replaced: &[RunRow], context: &Context) -> io::Result<bool> {
    let documents: Vec<_> = rows.iter().map(run_document).collect();
    let replaced: Vec<_> = replaced.iter().map(run_document).collect();
    let printed = serde_json::json!({ "runs": documents, "replaced": replaced });
    let is_text = context.format == Format::Text;
    for row in rows.iter().filter(|row| is_text && !run_text::has_result(row)) {
        say(&wording::why_not(row))?;
    }
    let with_result: Vec<RunRow> = rows
        .iter()
        .filter(|row| run_text::has_result(row))
        .cloned()
        .collect();
    if !is_text || !with_result.is_empty() {
        context.print(&printed, || tables::runs(&with_result))?;
    }
    for row in with_result.iter().filter(|_| is_text) {
        let audit = wording::audit(row);
        if let Some(audit) = &audit {
            say(audit)?;
        }
        // The line of an audit has the reason of its failure. LoadGen's own reasons are not in it.
        let is_invalid = row
            .outcome
            .as_ref()
            .is_some_and(|outcome| outcome.judgement.valid == Some(false));
        if !row.is_good() && (audit.is_none() || is_invalid) {
            say(&wording::why_not(row))?;
        }
    }
    Ok(rows.iter().all(RunRow::is_good))
}
