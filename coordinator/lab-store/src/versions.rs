//! Devices whose agents use a wire version that this coordinator cannot read. The store records their hellos so that `regatta device
//! list` can say why the devices are missing.

use regatta_types::DeviceId;

use super::{Devices, Result, now, values};
use crate::database::params;

/// The maximum number of such devices. When forged ids exceed it, the oldest entries are dropped.
const MAX: u32 = 256;

/// A device with an unreadable wire version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherVersion {
    /// The device's id, from its topic.
    pub device: DeviceId,
    /// The wire version of its hello.
    pub wire: u16,
    /// The time of its last hello.
    pub last_seen: String,
}

impl Devices<'_> {
    /// Stores that a device sent a hello in a wire version that this program cannot read.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn record_other_version(&self, id: &DeviceId, wire: u16) -> Result<()> {
        self.store.execute(
            "INSERT INTO other_versions (device, wire, last_seen) VALUES (?1, ?2, ?3)
                 ON CONFLICT (device) DO UPDATE SET wire = ?2, last_seen = ?3",
            params![id.as_str(), wire, now()],
        )?;
        self.store.execute(
            "DELETE FROM other_versions WHERE device NOT IN
             (SELECT device FROM other_versions ORDER BY last_seen DESC LIMIT ?1)",
            params![MAX],
        )?;
        Ok(())
    }

    /// Removes a device whose hello can be read again.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn clear_other_version(&self, id: &DeviceId) -> Result<()> {
        self.store.execute(
            "DELETE FROM other_versions WHERE device = ?1",
            params![id.as_str()],
        )?;
        Ok(())
    }

    /// Returns every such device.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn other_versions(&self) -> Result<Vec<OtherVersion>> {
        self.store
            .rows("SELECT * FROM other_versions ORDER BY device", params![], |row| {
                Ok(OtherVersion {
                    device: values::parsed(row, "device")?,
                    wire: row.get("wire")?,
                    last_seen: row.get("last_seen")?,
                })
            })
    }
}
