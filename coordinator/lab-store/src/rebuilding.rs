//! Rows that are restored from runs' directories after the store was lost. Members and tokens are not restored, because files of runs
//! must not decide who may take part.

use regatta_types::{
    DeviceId, RunId,
    documents::{DeviceFacts, RunState},
};

use super::{Devices, Result, Runs, StreamRow, run_draft::RunDraft, values};
use crate::database::params;

/// A device as a run's record and evidence describe it.
#[derive(Debug)]
pub struct RecordedDevice<'a> {
    /// The device's id.
    pub id: &'a DeviceId,
    /// Its name at that time.
    pub name: &'a str,
    /// Its Ed25519 public key. The id is its fingerprint.
    pub public_key: [u8; 32],
    /// The agent's version.
    pub agent: &'a str,
    /// Its facts at that time.
    pub facts: &'a DeviceFacts,
    /// The time when the record was written, RFC 3339 UTC.
    pub seen: &'a str,
}

impl Devices<'_> {
    /// Adds a device, or updates it from a newer run. The description from a device's own hello is kept.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn add_recorded(&self, device: &RecordedDevice<'_>) -> Result<()> {
        let facts = values::to_json(device.facts)?;
        self.store.all_or_nothing(|store| {
            let changed = store.execute(
                "INSERT INTO devices (id, name, public_key, agent, engines, facts, hellos, first_seen)
                     VALUES (?1, ?2, ?3, ?4, '[]', ?5, 0, ?6) ON CONFLICT (id) DO UPDATE
                     SET name = ?2, agent = ?4, facts = ?5 WHERE devices.hellos = 0",
                params![
                    device.id.as_str(),
                    device.name,
                    device.public_key,
                    device.agent,
                    facts,
                    device.seen
                ],
            )?;
            if changed > 0 {
                store.execute(
                    "INSERT INTO presence (device, online, last_seen) VALUES (?1, 0, ?2)
                     ON CONFLICT (device) DO UPDATE SET last_seen = ?2",
                    params![device.id.as_str(), device.seen],
                )?;
            }
            Ok(())
        })
    }
}

impl Runs<'_> {
    /// Adds a sent run with its last known state and its streams.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn add_sent(
        &self,
        draft: &RunDraft,
        spec_sha256: &str,
        state: &RunState,
        streams: &[StreamRow],
    ) -> Result<()> {
        let run: RunId = draft.spec.run;
        self.store.all_or_nothing(|store| {
            store.runs().add(draft)?;
            store.execute(
                "UPDATE runs SET spec_sha256 = ?2, known = 1, phase = ?3, reason = ?4, revision = ?5
                     WHERE id = ?1",
                params![
                    run.to_string(),
                    spec_sha256,
                    state.phase.as_str(),
                    state.reason,
                    values::signed(state.revision)
                ],
            )?;
            for stream in streams {
                store.streams().list(run, &stream.name)?;
                store.streams().record_progress(run, stream)?;
            }
            Ok(())
        })
    }
}
