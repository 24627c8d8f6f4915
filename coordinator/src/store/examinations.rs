//! Questions to devices what they are, and their answers: asked by one process, sent and answered in another. A question is
//! taken away with its answer; one that nobody came back for goes with the next.

use regatta_text::escape_lines;
use regatta_types::{DeviceId, RunId};
use regatta_wire::message::Examined;
use rusqlite::{OptionalExtension as _, params};

use super::{Result, Store, now, values};

/// Questions older than this have nobody waiting.
const FORGOTTEN_AFTER: jiff::SignedDuration = jiff::SignedDuration::from_hours(24);
/// Longest text of a device that is kept of each form, in bytes.
const LONGEST: usize = 100_000;

/// What a device answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Examination {
    /// What it found.
    Found {
        /// For programs.
        json: String,
        /// For people.
        text: String,
    },
    /// Why it did not look.
    Refused(String),
}

impl Store {
    /// Asks a device to examine itself; the question's id.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) fn request_examination(&self, device: &DeviceId) -> Result<RunId> {
        let old = jiff::Timestamp::now()
            .saturating_sub(FORGOTTEN_AFTER)
            .unwrap_or_default();
        self.connection
            .execute("DELETE FROM examinations WHERE asked < ?1", [old.to_string()])?;
        let id = RunId::now();
        self.connection.execute(
            "INSERT INTO examinations (id, device, asked) VALUES (?1, ?2, ?3)",
            params![id.to_string(), device.as_str(), now()],
        )?;
        Ok(id)
    }

    /// Questions that wait to be sent.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) fn examinations_to_send(&self) -> Result<Vec<(RunId, DeviceId)>> {
        self.questions("SELECT id, device FROM examinations WHERE sent = 0")
    }

    /// Questions that a device has refused, and still remembers.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) fn refused_examinations(&self) -> Result<Vec<(RunId, DeviceId)>> {
        self.questions("SELECT id, device FROM examinations WHERE refused IS NOT NULL AND told = 0")
    }

    fn questions(&self, sql: &str) -> Result<Vec<(RunId, DeviceId)>> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map([], |row| {
            Ok((values::parsed(row, "id")?, values::parsed(row, "device")?))
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// A question is on its way.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) fn examination_is_sent(&self, id: RunId) -> Result<()> {
        self.connection
            .execute("UPDATE examinations SET sent = 1 WHERE id = ?1", [id.to_string()])?;
        Ok(())
    }

    /// A device that refused has been told to forget the question.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) fn refused_examination_is_answered(&self, id: RunId) -> Result<()> {
        self.connection
            .execute("UPDATE examinations SET told = 1 WHERE id = ?1", [id.to_string()])?;
        Ok(())
    }

    /// Keeps an answer; `false` when that device was not asked.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) fn device_examined_itself(
        &self,
        device: &DeviceId,
        id: RunId,
        found: &Examined,
    ) -> Result<bool> {
        let first = |text: &str| -> String { text.chars().take(LONGEST).collect() };
        let changed = self.connection.execute(
            "UPDATE examinations SET json = ?3, text = ?4 WHERE id = ?1 AND device = ?2 AND json IS NULL",
            params![
                id.to_string(),
                device.as_str(),
                first(&found.json),
                escape_lines(&first(&found.text))
            ],
        )?;
        Ok(changed > 0)
    }

    /// Keeps why a device did not look; `false` when that device was not asked.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) fn device_refused_examination(
        &self,
        device: &DeviceId,
        id: RunId,
        reason: &str,
    ) -> Result<bool> {
        let changed = self.connection.execute(
            "UPDATE examinations SET refused = ?3 WHERE id = ?1 AND device = ?2 AND json IS NULL",
            params![id.to_string(), device.as_str(), reason],
        )?;
        Ok(changed > 0)
    }

    /// The answer to a question, once there is one.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) fn examination(&self, id: RunId) -> Result<Option<Examination>> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT json, text, refused FROM examinations WHERE id = ?1")?;
        let row = statement.query_row([id.to_string()], |row| {
            let json: Option<String> = row.get("json")?;
            let text: Option<String> = row.get("text")?;
            let refused: Option<String> = row.get("refused")?;
            Ok((json.zip(text), refused))
        });
        Ok(match row.optional()? {
            Some((Some((json, text)), _)) => Some(Examination::Found { json, text }),
            Some((None, Some(refused))) => Some(Examination::Refused(refused)),
            _ => None,
        })
    }
}
