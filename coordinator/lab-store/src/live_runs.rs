//! The runs that send their accuracy logs while they run.

use regatta_types::{RunId, StreamName, documents::RunSpec};

use super::{Result, RunDraft, Runs, values};
use crate::database::params;

/// A run that sends its accuracy log while it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveRun {
    pub run: RunId,
    pub accuracy_log: StreamName,
    /// The number of leading bytes of it that are on disk.
    pub committed: u64,
    draft: String,
}

impl LiveRun {
    /// Returns the run's spec, as it was drafted. `None` for a draft of another version.
    pub fn spec(&self) -> Option<RunSpec> {
        serde_json::from_str(&self.draft)
            .ok()
            .map(|draft: RunDraft| draft.spec)
    }
}

impl Runs<'_> {
    /// Returns the running runs that send their logs live and have sent a part of an accuracy log. Those with a requested abort are left out.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn live(&self) -> Result<Vec<LiveRun>> {
        self.store.rows(
            "SELECT runs.id AS run, draft, name, committed FROM runs JOIN streams
                 ON streams.run = runs.id WHERE recorded IS NULL AND lost = 0 AND abort IS NULL AND phase = 'running'
                 AND draft -> 'spec' ->> 'delivery' = 'live' AND name = 'mlperf_log_accuracy.json' AND committed > 0", params![], |row| {
            Ok(LiveRun {
                run: values::parsed(row, "run")?,
                accuracy_log: values::parsed(row, "name")?,
                committed: values::unsigned(row, "committed")?,
                draft: row.get("draft")?,
            })
        })
    }
}
