//! Labels of devices: words by which users group them. Devices do not know their labels.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
};

use regatta_types::DeviceId;
use serde::{Deserialize, Serialize};

use super::{Result, Store, values};
use crate::database::params;

/// The label of a device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DeviceLabel(String);

/// A word that cannot be a label.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a label: a label has 1 to {MAX} lower-case letters, digits and hyphens, and no hyphen first"
)]
pub struct InvalidLabel(String);

/// The longest label.
const MAX: usize = 63;

impl DeviceLabel {
    /// Separates stored labels, which contain no space.
    pub(super) fn list(joined: Option<String>) -> Vec<Self> {
        let joined = joined.unwrap_or_default();
        joined
            .split_whitespace()
            .map(|label| Self(label.to_owned()))
            .collect()
    }
}

impl FromStr for DeviceLabel {
    type Err = InvalidLabel;

    fn from_str(word: &str) -> std::result::Result<Self, InvalidLabel> {
        let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let is_label = (1..=MAX).contains(&word.len()) && !word.starts_with('-') && word.chars().all(is_part);
        if is_label {
            Ok(Self(word.to_owned()))
        } else {
            Err(InvalidLabel(word.to_owned()))
        }
    }
}

impl fmt::Display for DeviceLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[derive(Debug)]
pub struct DeviceLabels<'a> {
    pub(super) store: &'a Store,
}

impl DeviceLabels<'_> {
    /// Adds and removes labels of a device, all or none.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn change(
        &self,
        device: &DeviceId,
        added: &BTreeSet<DeviceLabel>,
        removed: &BTreeSet<DeviceLabel>,
    ) -> Result<()> {
        self.store.all_or_nothing(|store| {
            for label in removed {
                store.execute(
                    "DELETE FROM device_labels WHERE device = ?1 AND label = ?2",
                    params![device.as_str(), label.0],
                )?;
            }
            for label in added {
                store.execute(
                    "INSERT INTO device_labels (device, label) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
                    params![device.as_str(), label.0],
                )?;
            }
            Ok(())
        })
    }

    /// Returns every label with its devices, removed devices included.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn all(&self) -> Result<BTreeMap<DeviceLabel, BTreeSet<DeviceId>>> {
        let rows: Vec<_> = self
            .store
            .rows("SELECT label, device FROM device_labels", params![], |row| {
                Ok((DeviceLabel(row.get("label")?), values::parsed(row, "device")?))
            })?;
        let mut labels = BTreeMap::new();
        for (label, device) in rows {
            labels.entry(label).or_insert_with(BTreeSet::new).insert(device);
        }
        Ok(labels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_lower_case_words_with_hyphens() {
        let longest = "a".repeat(MAX);
        for word in ["edge", "lab-2", "0", longest.as_str()] {
            assert_eq!(word.parse::<DeviceLabel>().unwrap().to_string(), word);
        }
        let too_long = "a".repeat(MAX + 1);
        for word in [
            "",
            "-edge",
            "Edge",
            "a b",
            "a,b",
            "a_b",
            "\u{e4}",
            too_long.as_str(),
        ] {
            assert!(word.parse::<DeviceLabel>().is_err(), "{word}");
        }
    }
}
