//! Upgrades of the fleet: their devices by wave, and every attempt. Attempts are append-only, each with one cause if it failed. What an
//! upgrade does to a board is in `deploy`.

use regatta_types::{DeviceId, documents::EndCause};
use serde::Serialize;

use super::{Result, Store, now, values};
use crate::database::{Row, params};

/// An upgrade of several devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolloutRow {
    /// Its number, from 1.
    pub number: u64,
    /// SHA-256 of every package that was at hand.
    pub packages: Vec<String>,
    /// Its options as JSON, for a command that continues it.
    pub options: String,
    /// The time when it began.
    pub begun: String,
    /// Its outcome. `None` while it is under way, and when its command ended in the middle.
    pub outcome: Option<String>,
}

/// An attempt to upgrade one device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RolloutAttempt {
    /// Its number on this device, from 1.
    pub number: u64,
    /// The time when it began.
    pub begun: String,
    /// The time when it ended. `None` while it is under way, and when its command ended in the middle.
    pub ended: Option<String>,
    /// The cause of its failure.
    pub cause: Option<EndCause>,
    /// The same as a sentence.
    pub reason: Option<String>,
    /// The agent with which the device connected.
    pub agent: Option<String>,
}

impl RolloutAttempt {
    /// Returns whether the device has the new agent and passed the requested checks.
    pub const fn is_good(&self) -> bool {
        self.ended.is_some() && self.cause.is_none()
    }
}

/// A device of an upgrade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolloutDevice {
    pub device: DeviceId,
    /// Its wave, from 1.
    pub wave: u64,
    /// Its attempts, oldest first.
    pub attempts: Vec<RolloutAttempt>,
}

/// The end of an attempt.
#[derive(Debug, Clone, Copy)]
pub enum RolloutEnd<'a> {
    /// The device connected with this agent.
    Good(&'a str),
    /// The attempt failed.
    Failed(EndCause, &'a str),
}

fn attempt(row: &Row<'_>) -> Result<RolloutAttempt> {
    Ok(RolloutAttempt {
        number: values::unsigned(row, "number")?,
        begun: row.get("begun")?,
        ended: row.get("ended")?,
        cause: values::optional_parsed(row, "cause")?,
        reason: row.get("reason")?,
        agent: row.get("agent")?,
    })
}

#[derive(Debug)]
pub struct Rollouts<'a> {
    pub(super) store: &'a Store,
}

impl Rollouts<'_> {
    /// Stores a new upgrade with its devices and their waves. One that was not complete cannot be continued any more. Returns its number.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn add(&self, packages: &[String], options: &str, devices: &[(DeviceId, u64)]) -> Result<u64> {
        let packages = values::to_json(&packages)?;
        self.store.all_or_nothing(|store| {
            let number: i64 = store.row(
                "INSERT INTO rollouts (packages, options, begun) VALUES (?1, ?2, ?3) RETURNING number",
                params![packages, options, now()],
                |row| row.get("number"),
            )?;
            for (position, (device, wave)) in devices.iter().enumerate() {
                store.execute(
                    "INSERT INTO rollout_devices (rollout, device, position, wave) VALUES (?1, ?2, ?3, ?4)",
                    params![
                        number,
                        device.as_str(),
                        values::signed(position as u64),
                        values::signed(*wave)
                    ],
                )?;
            }
            Ok(u64::try_from(number).unwrap_or(0))
        })
    }

    /// Returns the newest upgrade.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn newest(&self) -> Result<Option<RolloutRow>> {
        self.store.optional(
            "SELECT * FROM rollouts ORDER BY number DESC LIMIT 1",
            params![],
            |row| {
                Ok(RolloutRow {
                    number: values::unsigned(row, "number")?,
                    packages: values::json(row, "packages")?,
                    options: row.get("options")?,
                    begun: row.get("begun")?,
                    outcome: row.get("outcome")?,
                })
            },
        )
    }

    /// Returns the devices of an upgrade in their order.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn devices(&self, rollout: u64) -> Result<Vec<RolloutDevice>> {
        self.store.rows(
            "SELECT * FROM rollout_devices WHERE rollout = ?1 ORDER BY position",
            params![values::signed(rollout)],
            |row| {
                let device: DeviceId = values::parsed(row, "device")?;
                Ok(RolloutDevice {
                    wave: values::unsigned(row, "wave")?,
                    attempts: self.attempts(rollout, &device)?,
                    device,
                })
            },
        )
    }

    fn attempts(&self, rollout: u64, device: &DeviceId) -> Result<Vec<RolloutAttempt>> {
        self.store.rows(
            "SELECT * FROM rollout_attempts WHERE rollout = ?1 AND device = ?2 ORDER BY number",
            params![values::signed(rollout), device.as_str()],
            attempt,
        )
    }

    /// Begins an attempt. An open one of a command that ended in the middle ends as failed.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn begin_attempt(&self, rollout: u64, device: &DeviceId) -> Result<()> {
        let end = RolloutEnd::Failed(EndCause::Infrastructure, "its command ended in the middle");
        self.store.all_or_nothing(|store| {
            store.rollouts().end_attempt(rollout, device, end)?;
            store.execute(
                "INSERT INTO rollout_attempts (rollout, device, number, begun) VALUES (?1, ?2, 1 +
                 (SELECT count(*) FROM rollout_attempts WHERE rollout = ?1 AND device = ?2), ?3)",
                params![values::signed(rollout), device.as_str(), now()],
            )?;
            Ok(())
        })
    }

    /// Ends the open attempt of a device.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn end_attempt(&self, rollout: u64, device: &DeviceId, end: RolloutEnd<'_>) -> Result<()> {
        let (cause, reason, agent) = match end {
            RolloutEnd::Good(agent) => (None, None, Some(agent)),
            RolloutEnd::Failed(cause, reason) => (Some(cause.as_str()), Some(reason), None),
        };
        self.store.execute(
            "UPDATE rollout_attempts SET ended = ?3, cause = ?4, reason = ?5, agent = ?6
             WHERE rollout = ?1 AND device = ?2 AND ended IS NULL",
            params![
                values::signed(rollout),
                device.as_str(),
                now(),
                cause,
                reason,
                agent
            ],
        )?;
        Ok(())
    }

    /// Stores the outcome of an upgrade. `None` means that it is still running.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn set_outcome(&self, rollout: u64, outcome: Option<&str>) -> Result<()> {
        self.store.execute(
            "UPDATE rollouts SET outcome = ?2 WHERE number = ?1",
            params![values::signed(rollout), outcome],
        )?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_kept_and_a_killed_command_leaves_no_open_one() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("regatta.db")).unwrap();
        let device = |digit: &str| -> DeviceId { digit.repeat(32).parse().unwrap() };
        let (first, second) = (device("1"), device("2"));
        assert_eq!(store.rollouts().newest().unwrap(), None);
        let packages = ["ab".to_owned()];
        let number = store
            .rollouts()
            .add(&packages, "{}", &[(second.clone(), 1), (first.clone(), 2)])
            .unwrap();
        store.rollouts().begin_attempt(number, &second).unwrap();
        // The command was killed, and another one continues.
        store.rollouts().begin_attempt(number, &second).unwrap();
        let good = RolloutEnd::Good("regatta-agent 2");
        store.rollouts().end_attempt(number, &second, good).unwrap();
        store.rollouts().end_attempt(number, &first, good).unwrap();
        let devices = store.rollouts().devices(number).unwrap();
        assert_eq!(
            devices
                .iter()
                .map(|row| (&row.device, row.wave))
                .collect::<Vec<_>>(),
            [(&second, 1), (&first, 2)]
        );
        let ends: Vec<_> = devices[0]
            .attempts
            .iter()
            .map(|attempt| (attempt.number, attempt.cause, attempt.agent.as_deref()))
            .collect();
        assert_eq!(
            ends,
            [
                (1, Some(EndCause::Infrastructure), None),
                (2, None, Some("regatta-agent 2"))
            ]
        );
        assert!(devices[0].attempts[1].is_good() && devices[1].attempts.is_empty());
        store.rollouts().set_outcome(number, Some("complete")).unwrap();
        assert_eq!(
            store.rollouts().newest().unwrap().unwrap().outcome.as_deref(),
            Some("complete")
        );
    }
}
