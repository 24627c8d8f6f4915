//! Streams: the number of bytes of each file of a run that are on disk. These rows record what has been promised to the device.

use regatta_fsutil::hash::unhex;
use regatta_types::{RunId, StreamName};
use regatta_wire::message::StreamEnd;

use super::{Result, Store, values};
use crate::database::{Row, params};

/// One stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamRow {
    /// The stream's name.
    pub name: StreamName,
    /// Whether the device lists it among the run's files.
    pub listed: bool,
    /// The number of leading bytes that are on disk.
    pub committed: u64,
    /// The length that the device stated.
    pub stated_length: Option<u64>,
    /// The SHA-256 that the device stated, in hexadecimal.
    pub stated_sha256: Option<String>,
    /// Whether the stream is complete, with the stated SHA-256.
    pub is_complete: bool,
}

impl StreamRow {
    /// Returns the end that the device stated.
    pub fn stated_end(&self) -> Option<StreamEnd> {
        let sha256 = unhex(self.stated_sha256.as_ref()?)?;
        Some(StreamEnd {
            length: self.stated_length?,
            sha256: sha256.try_into().ok()?,
        })
    }
}

fn stream(row: &Row<'_>) -> Result<StreamRow> {
    let stated_length: Option<i64> = row.get("stated_length")?;
    Ok(StreamRow {
        name: values::parsed(row, "name")?,
        listed: row.get("listed")?,
        committed: values::unsigned(row, "committed")?,
        stated_length: stated_length.and_then(|length| u64::try_from(length).ok()),
        stated_sha256: row.get("stated_sha256")?,
        is_complete: row.get("complete")?,
    })
}

/// The streams of runs, and how much of each file is on disk.
#[derive(Debug)]
pub struct Streams<'a> {
    pub(super) store: &'a Store,
}

impl Streams<'_> {
    /// Returns every stream of a run, by name.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn of_run(&self, run: RunId) -> Result<Vec<StreamRow>> {
        self.store.rows(
            "SELECT * FROM streams WHERE run = ?1 ORDER BY name",
            params![run.to_string()],
            stream,
        )
    }

    /// Stores the progress of a stream. Returns `false` when its run was removed meanwhile. The caller has flushed its file.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn record_progress(&self, run: RunId, row: &StreamRow) -> Result<bool> {
        let changed = self.store.execute(
            "INSERT INTO streams (run, name, committed, stated_length, stated_sha256, complete)
             SELECT ?1, ?2, ?3, ?4, ?5, ?6 WHERE EXISTS (SELECT 1 FROM runs WHERE id = ?1)
             ON CONFLICT (run, name) DO UPDATE
             SET committed = ?3, stated_length = ?4, stated_sha256 = ?5, complete = ?6",
            params![
                run.to_string(),
                row.name.as_str(),
                values::signed(row.committed),
                row.stated_length.map(values::signed),
                row.stated_sha256,
                row.is_complete
            ],
        )?;
        Ok(changed > 0)
    }

    /// Stores that the device lists a stream among the run's files.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn list(&self, run: RunId, name: &StreamName) -> Result<()> {
        self.store.execute(
            "INSERT INTO streams (run, name, listed) VALUES (?1, ?2, 1)
                 ON CONFLICT (run, name) DO UPDATE SET listed = 1 WHERE streams.listed = 0",
            params![run.to_string(), name.as_str()],
        )?;
        Ok(())
    }

    /// Stores the list of a run's files that its device has signed, and removes the rows of all streams that no such list has. Returns the
    /// removed streams, whose files the caller removes.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn list_signed(&self, run: RunId, names: &[StreamName]) -> Result<Vec<StreamName>> {
        names.iter().try_for_each(|name| self.list(run, name))?;
        self.store.rows(
            "DELETE FROM streams WHERE run = ?1 AND listed = 0 RETURNING name",
            params![run.to_string()],
            |row| values::parsed(row, "name"),
        )
    }

    /// Resets a complete stream whose file is missing or changed on this disk. The device must deliver it again from the start.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn reset(&self, run: RunId, name: &StreamName) -> Result<()> {
        self.store.execute(
            "UPDATE streams SET listed = 1, complete = 0, committed = 0, stated_length = NULL, stated_sha256 = NULL
             WHERE run = ?1 AND name = ?2", params![run.to_string(), name.as_str()])?;
        Ok(())
    }

    /// Returns the number of bytes of all runs that are on disk.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn delivered_bytes(&self) -> Result<u64> {
        let bytes: i64 = self.store.row(
            "SELECT CAST(coalesce(sum(committed), 0) AS BIGINT) FROM streams",
            params![],
            |row| row.get(0),
        )?;
        Ok(u64::try_from(bytes).unwrap_or(0))
    }

    /// Returns the number of bytes of a run that are on disk.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn committed_bytes(&self, run: RunId) -> Result<u64> {
        let bytes: i64 = self.store.row(
            "SELECT CAST(coalesce(sum(committed), 0) AS BIGINT) FROM streams WHERE run = ?1",
            params![run.to_string()],
            |row| row.get(0),
        )?;
        Ok(u64::try_from(bytes).unwrap_or(0))
    }
}
