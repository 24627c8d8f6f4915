//! Repeats INVALID runs whose rate was a guess. LoadGen plans the number of queries by the expected rate. The device's speed is known
//! after the first run, so the same request is sent again with the rates that the run has shown.

use anyhow::Context as _;
use regatta_fsutil::regular_file::{self, LARGEST_DOCUMENT};
use regatta_types::documents::{Document as _, RunSpec};

use super::estimate::estimate;
use crate::{
    store::{RunDraft, RunRow, Store},
    workspace::Workspace,
};

/// Returns the drafts that repeat the INVALID runs among `rows`, each with the place of its run in `rows`. A run that would be sent with
/// the same settings again is not repeated, as with a rate from the user. Audits repeat a fixed spec and are not repeated here.
///
/// # Errors
/// Returns an error when the store fails or a run's spec cannot be read.
pub(crate) fn repetitions(
    rows: &[RunRow],
    workspace: &Workspace,
    store: &Store,
) -> anyhow::Result<Vec<(usize, RunDraft)>> {
    let mut found = Vec::new();
    for (place, row) in rows.iter().enumerate() {
        let is_invalid = row
            .outcome
            .as_ref()
            .is_some_and(|outcome| outcome.valid == Some(false));
        if is_invalid && row.audit().is_none() && has_other_rates(row, workspace, store)? {
            found.push((place, row.draft.repeated()));
        }
    }
    Ok(found)
}

/// Returns whether the run would be sent with other rates now.
fn has_other_rates(row: &RunRow, workspace: &Workspace, store: &Store) -> anyhow::Result<bool> {
    let sent =
        regular_file::read(&workspace.run(row.id).spec(), LARGEST_DOCUMENT).context("the run's spec")?;
    let sent = RunSpec::from_json(&sent)?;
    let past = store.recorded_runs_like(&row.draft)?;
    Ok(row.draft.user_conf(&estimate(&row.draft.spec, &past)) != sent.conf.user_conf)
}
