//! Devices that a power session measures. Between its two runs the device seems idle, and must stay so: another run would heat it, or be
//! measured. So the lease of a meter also leases the device, and all code that assigns work to a device checks the lease in the same transaction.

use std::collections::BTreeSet;

use regatta_types::{DeviceId, RunId};

use super::{LeaseState, LeasedDevice, Meters, Result, RunDraft, Runs, StoreError, values};
use crate::database::params;

impl Meters<'_> {
    /// Returns the devices that power sessions have leased. Stale leases do not count.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn leased_devices(&self) -> Result<Vec<LeasedDevice>> {
        let leased = self.all()?.into_iter().filter_map(|meter| {
            let lease = meter.lease.filter(|lease| lease.state() != LeaseState::Stale)?;
            Some(LeasedDevice {
                device: lease.device?,
                meter: meter.name,
                session: lease.session,
            })
        });
        Ok(leased.collect())
    }

    /// Returns the power session that has leased a device, if there is one.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn leased_device(&self, device: &DeviceId) -> Result<Option<LeasedDevice>> {
        let leased = self.leased_devices()?;
        Ok(leased.into_iter().find(|leased| leased.device == *device))
    }

    /// Returns the devices with a power session, for selecting runs.
    pub(super) fn measured_devices(&self) -> Result<BTreeSet<DeviceId>> {
        let leased = self.leased_devices()?;
        Ok(leased.into_iter().map(|leased| leased.device).collect())
    }
}

impl Runs<'_> {
    /// Adds a run that a user requests. It waits at the coordinator.
    ///
    /// # Errors
    /// Returns [`StoreError::Measured`] when a power session measures the device, or an error when the store fails.
    pub fn request(&self, draft: &RunDraft) -> Result<()> {
        self.store
            .all_or_nothing(|store| match store.meters().leased_device(&draft.spec.device)? {
                Some(leased) => Err(StoreError::Measured {
                    session: leased.session,
                    meter: leased.meter,
                }),
                None => store.runs().add(draft),
            })
    }

    /// Adds the ranging or testing run of a power session, and links both.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn request_of_session(&self, session: &str, is_ranging: bool, draft: &RunDraft) -> Result<()> {
        self.store.all_or_nothing(|store| {
            store.runs().add(draft)?;
            store
                .power_sessions()
                .set_run(session, is_ranging, draft.spec.run)
        })
    }

    /// Returns the unfinished runs of a device, without those of power sessions that have ended or will end when their lease is taken over.
    pub(super) fn unfinished_beside_sessions(&self, device: &DeviceId) -> Result<Vec<RunId>> {
        let sessions = "SELECT 1 FROM power_sessions WHERE runs.id IN (ranging, testing)";
        self.unfinished_where(device, &format!("NOT EXISTS ({sessions})"))
    }

    /// Returns the unfinished runs of a device: without a record, or with an abort that the device must confirm.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn unfinished(&self, device: &DeviceId) -> Result<Vec<RunId>> {
        self.unfinished_where(device, "1 = 1")
    }

    /// Returns the runs that were sent to a device, or are about to be, and have no record yet.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn sent(&self, device: &DeviceId) -> Result<Vec<RunId>> {
        self.unfinished_where(device, "spec_sha256 IS NOT NULL AND lost = 0")
    }

    /// Returns the runs besides those of a power session that were on its device since it began: unfinished ones, and recorded ones.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn beside_session(&self, session: &str) -> Result<Vec<RunId>> {
        let rows = self.store.rows(
            "SELECT runs.id AS id, recorded, begun FROM runs JOIN power_sessions AS session
                 ON session.device = runs.device WHERE session.id = ?1 AND spec_sha256 IS NOT NULL AND runs.id IS
                 DISTINCT FROM ranging AND runs.id IS DISTINCT FROM testing AND ((recorded IS NULL AND lost = 0) OR
                 substr(recorded, 1, 19) >= substr(begun, 1, 19)) AND (session.ended IS NULL OR created <=
                 session.ended) ORDER BY runs.id", params![session], |row| {
            let recorded: Option<String> = row.get("recorded")?;
            let begun: String = row.get("begun")?;
            Ok((values::parsed(row, "id")?, recorded, begun))
        })?;
        let rows: Vec<(RunId, Option<String>, String)> = rows;
        // Texts of times with and without a fraction of the second do not sort by time.
        let time = |text: &str| text.parse::<jiff::Timestamp>().ok();
        let is_beside = |recorded: &Option<String>, begun: &str| {
            recorded
                .as_deref()
                .is_none_or(|recorded| time(recorded) >= time(begun))
        };
        let beside = rows
            .into_iter()
            .filter(|(_, recorded, begun)| is_beside(recorded, begun));
        Ok(beside.map(|(run, ..)| run).collect())
    }

    fn unfinished_where(&self, device: &DeviceId, condition: &str) -> Result<Vec<RunId>> {
        self.store.rows(
            &format!(
            "SELECT id FROM runs WHERE device = ?1 AND (recorded IS NULL OR pending_abort IS NOT NULL) AND
                     {condition} ORDER BY id"
        ),
            params![device.as_str()],
            |row| values::parsed(row, "id"),
        )
    }
}

#[cfg(test)]
mod tests;
