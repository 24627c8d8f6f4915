//! Devices whose agents speak a wire version that this coordinator does not read. They cannot say hello; that they tried
//! is kept, so that `regatta device list` can say why they are missing.

use regatta_types::DeviceId;
use rusqlite::params;

use super::{Result, Store, now, values};

/// Such devices at most; whoever forges more ids takes the place of the oldest.
const MOST: u32 = 256;

/// One such device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OtherVersion {
    /// Its id, by its topic.
    pub(crate) device: DeviceId,
    /// The wire version of its hello.
    pub(crate) wire: u16,
    /// When it last tried.
    pub(crate) last_seen: String,
}

impl Store {
    /// A device said hello in a wire version that this program does not read.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) fn device_spoke_other_version(&self, id: &DeviceId, wire: u16) -> Result<()> {
        self.connection
            .prepare_cached(
                "INSERT INTO other_versions (device, wire, last_seen) VALUES (?1, ?2, ?3)
                 ON CONFLICT (device) DO UPDATE SET wire = ?2, last_seen = ?3",
            )?
            .execute(params![id.as_str(), wire, now()])?;
        self.connection
            .prepare_cached(
                "DELETE FROM other_versions WHERE device NOT IN
                     (SELECT device FROM other_versions ORDER BY last_seen DESC LIMIT ?1)",
            )?
            .execute([MOST])?;
        Ok(())
    }

    /// A device is understood again.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) fn device_is_understood(&self, id: &DeviceId) -> Result<()> {
        self.connection
            .prepare_cached("DELETE FROM other_versions WHERE device = ?1")?
            .execute([id.as_str()])?;
        Ok(())
    }

    /// Every such device.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) fn other_versions(&self) -> Result<Vec<OtherVersion>> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT * FROM other_versions ORDER BY device")?;
        let rows = statement.query_map([], |row| {
            Ok(OtherVersion {
                device: values::parsed(row, "device")?,
                wire: row.get("wire")?,
                last_seen: row.get("last_seen")?,
            })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}
