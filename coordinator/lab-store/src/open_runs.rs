//! The runs without a record, without their drafts and outcomes: the dispatcher reads all of them several times a second.

use regatta_types::{DeviceId, RunId, documents::RunPhase};

use super::{Result, Runs, values};
use crate::database::params;

/// A run without a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenRun {
    /// The run's id.
    pub id: RunId,
    /// The device that runs it.
    pub device: DeviceId,
    /// The phase that the device reported last.
    pub phase: RunPhase,
    /// The revision of that state.
    pub revision: u64,
    /// Whether the device has reported a state of the run.
    pub known: bool,
    /// Whether the device no longer has it.
    pub lost: bool,
    /// Whether its spec is fixed, so that it may be sent.
    pub is_fixed: bool,
    /// Whether a run that is not sent yet may start on a quarantined or drained device.
    pub is_forced: bool,
    /// The reason of a requested abort.
    pub abort: Option<String>,
    /// Whether the device must stop the run's model server.
    pub stops_server: bool,
}

impl Runs<'_> {
    /// Returns the runs without a record, oldest first, without their drafts.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn open_states(&self) -> Result<Vec<OpenRun>> {
        self.store.rows(
            "SELECT id, device, phase, revision, known, lost, abort, stop_server, spec_sha256 IS NOT NULL AS
                 is_fixed, CASE WHEN spec_sha256 IS NULL AND CAST(draft -> 'forced' AS TEXT) = 'true' THEN 1 ELSE 0
                 END AS is_forced FROM runs WHERE recorded IS NULL ORDER BY id", params![], |row| {
            Ok(OpenRun {
                id: values::parsed(row, "id")?,
                device: values::parsed(row, "device")?,
                phase: values::phase(row, "phase")?,
                revision: values::unsigned(row, "revision")?,
                known: row.get("known")?,
                lost: row.get("lost")?,
                is_fixed: row.get("is_fixed")?,
                is_forced: row.get("is_forced")?,
                abort: row.get("abort")?,
                stops_server: row.get("stop_server")?,
            })
        })
    }
}
