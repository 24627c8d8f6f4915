//! The software of each device when a campaign began. `campaigns` compares it with the present one.

use std::collections::BTreeMap;

use regatta_types::{DeviceId, documents::SoftwareFacts};

use super::{Campaigns, Result, values};
use crate::database::params;

/// Returns the software in a device's facts, as JSON. They come from outside; those that are not JSON have none.
fn software(facts: &str) -> Option<String> {
    let facts: serde_json::Value = serde_json::from_str(facts).ok()?;
    let software = facts.get("software").filter(|software| !software.is_null())?;
    Some(software.to_string())
}

impl Campaigns<'_> {
    /// Stores the present software of every device for a campaign that begins.
    pub(super) fn pin_software(&self, campaign: &str) -> Result<()> {
        let devices: Vec<(String, String)> =
            self.store
                .rows("SELECT id, facts FROM devices", params![], |row| {
                    Ok((row.get("id")?, row.get("facts")?))
                })?;
        for (device, facts) in devices {
            self.store.execute(
                "INSERT INTO campaign_software (campaign, device, software) VALUES (?1, ?2, ?3)",
                params![campaign, device, software(&facts)],
            )?;
        }
        Ok(())
    }

    /// Returns the devices whose software has changed since a campaign began, with their earlier software. Agents of before did not report
    /// any.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn devices_with_other_software(
        &self,
        campaign: &str,
    ) -> Result<BTreeMap<DeviceId, Option<SoftwareFacts>>> {
        let devices: Vec<(DeviceId, Option<String>, String)> = self.store.rows(
            "SELECT device, software, facts FROM campaign_software JOIN devices
                 ON devices.id = device WHERE campaign = ?1",
            params![campaign],
            |row| {
                Ok((
                    values::parsed(row, "device")?,
                    row.get("software")?,
                    row.get("facts")?,
                ))
            },
        )?;
        let changed = devices
            .into_iter()
            .filter(|(_, then, facts)| *then != software(facts));
        let earlier = |then: Option<String>| then.and_then(|json| serde_json::from_str(&json).ok());
        Ok(changed.map(|(device, then, _)| (device, earlier(then))).collect())
    }
}
