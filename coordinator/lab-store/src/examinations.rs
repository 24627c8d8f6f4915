//! Requests to devices to examine themselves, and the answers. One process makes a request, and another one sends it until there is an answer,
//! which it stores. Each new request deletes the requests older than a day.

use regatta_text::escape_lines;
use regatta_types::{DeviceId, RunId};
use regatta_wire::message::Examined;

use super::{Result, Store, now, values};
use crate::database::params;

/// The age after which no command waits for an answer.
const FORGOTTEN_AFTER: jiff::SignedDuration = jiff::SignedDuration::from_hours(24);
/// The maximum length of each text of an answer, in characters.
const MAX: usize = 100_000;

/// A request without a answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenExamination {
    pub id: RunId,
    pub device: DeviceId,
    /// The device's number of hellos, which grows with every connection.
    pub hellos: u64,
}

/// A device's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Examination {
    /// The report.
    Found {
        /// The report as JSON, for programs.
        json: String,
        /// The report as text, for people.
        text: String,
    },
    /// The reason why the device did not examine itself.
    Refused(String),
}

/// The examination requests and their answers.
#[derive(Debug)]
pub struct Examinations<'a> {
    pub(super) store: &'a Store,
}

impl Examinations<'_> {
    /// Stores a request for a device to examine itself, and returns its id.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn request(&self, device: &DeviceId) -> Result<RunId> {
        let old = jiff::Timestamp::now()
            .saturating_sub(FORGOTTEN_AFTER)
            .unwrap_or_default();
        self.store.execute(
            "DELETE FROM examinations WHERE requested_at < ?1",
            params![old.to_string()],
        )?;
        let id = RunId::now();
        self.store.execute(
            "INSERT INTO examinations (id, device, requested_at) VALUES (?1, ?2, ?3)",
            params![id.to_string(), device.as_str(), now()],
        )?;
        Ok(id)
    }

    /// Returns the requests without a answer whose device is online and not in a timed window.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn unanswered(&self) -> Result<Vec<OpenExamination>> {
        self.store.rows(
            "SELECT examinations.id AS id, device, hellos FROM examinations JOIN devices ON devices.id = device JOIN presence USING (device)
             WHERE json IS NULL AND refused IS NULL AND online = 1 AND running IS NULL", params![], |row| {
            Ok(OpenExamination {
                id: values::parsed(row, "id")?,
                device: values::parsed(row, "device")?,
                hellos: values::unsigned(row, "hellos")?,
            })
        })
    }

    /// Returns the refused requests whose device was not sent `Forget` since the last refusal.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn unacknowledged_refusals(&self) -> Result<Vec<(RunId, DeviceId)>> {
        self.store.rows(
            "SELECT id, device FROM examinations WHERE refused IS NOT NULL AND acknowledged = 0",
            params![],
            |row| Ok((values::parsed(row, "id")?, values::parsed(row, "device")?)),
        )
    }

    /// Records that `Forget` was sent for a request that the device refused. A device that did not receive it refuses again.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn acknowledge_refusal(&self, id: RunId) -> Result<()> {
        self.store.execute(
            "UPDATE examinations SET acknowledged = 1 WHERE id = ?1",
            params![id.to_string()],
        )?;
        Ok(())
    }

    /// Stores the first answer. Returns `false` when there is no such request to the device.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn record_report(&self, device: &DeviceId, id: RunId, found: &Examined) -> Result<bool> {
        let first = |text: &str| -> String { text.chars().take(MAX).collect() };
        let changed = self.store.execute(
            "UPDATE examinations SET json = coalesce(json, ?3), text = coalesce(text, ?4)
                 WHERE id = ?1 AND device = ?2",
            params![
                id.to_string(),
                device.as_str(),
                first(&found.json),
                escape_lines(&first(&found.text))
            ],
        )?;
        Ok(changed > 0)
    }

    /// Stores the reason why a device refused. Returns `false` when the device has no such open request.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn record_refusal(&self, device: &DeviceId, id: RunId, reason: &str) -> Result<bool> {
        let changed = self.store.execute(
            "UPDATE examinations SET refused = ?3, acknowledged = 0 WHERE id = ?1 AND device = ?2 AND json IS
                 NULL",
            params![id.to_string(), device.as_str(), reason],
        )?;
        Ok(changed > 0)
    }

    /// Returns the answer to a request, once there is one.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn answer(&self, id: RunId) -> Result<Option<Examination>> {
        let row = self.store.optional(
            "SELECT json, text, refused FROM examinations WHERE id = ?1",
            params![id.to_string()],
            |row| {
                let json: Option<String> = row.get("json")?;
                let text: Option<String> = row.get("text")?;
                let refused: Option<String> = row.get("refused")?;
                Ok((json.zip(text), refused))
            },
        )?;
        Ok(match row {
            Some((Some((json, text)), _)) => Some(Examination::Found { json, text }),
            Some((None, Some(refused))) => Some(Examination::Refused(refused)),
            _ => None,
        })
    }
}
