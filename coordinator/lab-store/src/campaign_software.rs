//! The software of each device when a campaign began. `campaigns` compares it with the present one.

use std::collections::BTreeMap;

use regatta_types::{DeviceId, documents::SoftwareFacts};

use super::{Campaigns, Result, values};

/// The software in a device's facts. They come from outside; those that are not JSON have none.
const SOFTWARE: &str = "CASE WHEN json_valid(facts) THEN json_extract(facts, '$.software') END";

impl Campaigns<'_> {
    /// Stores the present software of every device for a campaign that begins.
    pub(super) fn pin_software(&self, campaign: &str) -> Result<()> {
        self.store
            .connection
            .prepare_cached(&format!(
                "INSERT INTO campaign_software (campaign, device, software) SELECT ?1, id, {SOFTWARE} FROM devices",
            ))?
            .execute([campaign])?;
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
        let mut statement = self.store.connection.prepare_cached(&format!(
            "SELECT device, software FROM campaign_software JOIN devices ON devices.id = device
             WHERE campaign = ?1 AND software IS NOT {SOFTWARE}"
        ))?;
        let rows = statement.query_map([campaign], |row| {
            let then: Option<String> = row.get("software")?;
            let then = then.and_then(|json| serde_json::from_str(&json).ok());
            Ok((values::parsed(row, "device")?, then))
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}
