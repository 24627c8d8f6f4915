//! The steps before a session: checking the machines, ending earlier sessions, and removing their files.

use std::{
    thread,
    time::{Duration, Instant},
};

use regatta_types::DeviceId;

use super::{
    super::{
        cancel::Cancel,
        preflight::{Preflight, PreflightDevice, PreflightResult},
        session_error::PowerSessionError,
        session_record::read_session_record,
    },
    PowerSessionRunner,
};
use regatta_lab_store::{RunDraft, StoreError};

/// The longest wait for the end of runs of earlier sessions. An agent kills a process after 5 s, unless it is configured otherwise.
const MAX_EARLIER_RUN_WAIT: Duration = Duration::from_secs(60);
const EARLIER_RUN_INTERVAL: Duration = Duration::from_millis(200);

impl PowerSessionRunner<'_> {
    /// Checks whether a session can succeed. `session` has leased the device.
    ///
    /// # Errors
    /// Returns an error when the store fails or the device was removed.
    pub fn preflight(
        &self,
        draft: &RunDraft,
        session: Option<&str>,
    ) -> Result<PreflightResult, PowerSessionError> {
        let id = &draft.spec.device;
        let device = self.store.devices().get(id)?;
        let device = device.ok_or_else(|| PowerSessionError::NoDevice(id.clone()))?;
        let preflight = Preflight {
            settings: &self.meter.settings,
            rules: self.rules,
            director: &self.machines.director,
            system: &self.machines.system,
            address: &self.machines.address,
            directory: self.workspace.root(),
            device: PreflightDevice {
                name: device.name.clone(),
                facts: device.reported_facts().ok(),
                online: device.online,
            },
            other_work: self.other_work(id, session)?,
            spec: &draft.spec,
            reads_meter: !self.meter_was_read.get(),
        };
        let result = preflight.check();
        self.meter_was_read.set(result.passed());
        Ok(result)
    }

    /// Returns what keeps a device busy besides a power session, in words.
    fn other_work(&self, device: &DeviceId, session: Option<&str>) -> Result<Option<String>, StoreError> {
        let other = self.store.meters().leased_device(device)?;
        if let Some(other) = other.filter(|other| session != Some(other.session.as_str())) {
            return Ok(Some(format!("power session {} measures it", other.session)));
        }
        let runs = self.store.runs().unfinished(device)?;
        Ok(runs.first().map(|run| match runs.len() {
            1 => format!("run {run} has not ended"),
            count => format!("run {run} and {} more have not ended", count - 1),
        }))
    }

    /// Waits until the runs of sessions that have ended are over on the device: they are being aborted.
    pub(super) fn wait_for_earlier_sessions(
        &self,
        device: &DeviceId,
        cancel: &Cancel,
    ) -> Result<(), PowerSessionError> {
        let begun = Instant::now();
        loop {
            let unfinished = self.store.runs().unfinished(device)?;
            let Some(run) = unfinished.first() else {
                return Ok(());
            };
            if let Some(reason) = cancel.requested() {
                return Err(PowerSessionError::Cancelled(reason));
            }
            if begun.elapsed() > MAX_EARLIER_RUN_WAIT {
                return Err(PowerSessionError::EarlierRun {
                    run: *run,
                    waited: MAX_EARLIER_RUN_WAIT,
                });
            }
            thread::sleep(EARLIER_RUN_INTERVAL);
        }
    }

    /// Removes what recorded sessions of this workspace have left on other machines, because their connection was lost. Files that can still be
    /// fetched stay, and so do those of sessions that this workspace does not know.
    pub(super) fn remove_left_over(&self) {
        for machine in [&self.machines.director, &self.machines.system] {
            let (Some(link), Some(sessions)) = (&machine.link, machine.sessions()) else {
                continue;
            };
            // A directory that cannot be listed has nothing to remove; the checks name what stays.
            for directory in link.files().directories(&sessions).unwrap_or_default() {
                let name = directory.file_name().unwrap_or_default().to_string_lossy();
                let id = name.strip_suffix("-device").or(name.strip_suffix("-director"));
                if id.is_some_and(|id| self.is_over_and_fetched(id)) {
                    let _ = link.files().remove(&directory.to_string_lossy());
                }
            }
        }
    }

    fn is_over_and_fetched(&self, id: &str) -> bool {
        let row = self.store.power_sessions().get(id).ok().flatten();
        // Files of a session whose record cannot be read stay.
        let record = read_session_record(&self.workspace.power_session(id))
            .ok()
            .flatten();
        row.is_some_and(|row| row.ended.is_some()) && record.is_some_and(|record| record.unfetched.is_none())
    }
}
