//! Selects runs by the campaign that requested them, and by their engine settings.

use std::{collections::BTreeSet, str::FromStr};

use regatta_lab_store::{RunRow, Store, lab_error::LabError};

/// The runs of a campaign, or of one variant of its settings.
#[derive(Debug)]
pub struct CampaignRuns {
    name: String,
    variant: Option<String>,
}

impl CampaignRuns {
    /// Returns whether a run is one of them.
    pub fn contains(&self, row: &RunRow) -> bool {
        row.campaign_cell.as_ref().is_some_and(|cell| {
            cell.campaign == self.name && (self.variant.is_none() || cell.variant == self.variant)
        })
    }
}

/// Returns the runs of `NAME` or `NAME/VARIANT`. Unknown names are errors.
pub fn campaign_runs(store: &Store, words: &str) -> Result<CampaignRuns, LabError> {
    let (name, variant) = match words.split_once('/') {
        Some((name, variant)) => (name, Some(variant)),
        None => (words, None),
    };
    if store.campaigns().get(name)?.is_none() {
        let known: Vec<String> = store.campaigns().all()?.into_iter().map(|row| row.name).collect();
        return Err(LabError::misuse(match known.as_slice() {
            [] => format!("unknown campaign `{name}`: there is no campaign yet"),
            known => format!("unknown campaign `{name}`; known are {}", known.join(", ")),
        })
        .hint("`regatta campaign list` shows them"));
    }
    if let Some(variant) = variant {
        let combinations = store.cells().combinations(name)?;
        let known: BTreeSet<&str> = combinations
            .iter()
            .filter_map(|found| found.variant.as_deref())
            .collect();
        if !known.contains(variant) {
            let known: Vec<&str> = known.into_iter().collect();
            return Err(LabError::misuse(match known.as_slice() {
                [] => format!("campaign {name} has no variants of settings"),
                known => format!(
                    "campaign {name} has no variant `{variant}`; it has {}",
                    known.join(", ")
                ),
            }));
        }
    }
    Ok(CampaignRuns {
        name: name.to_owned(),
        variant: variant.map(str::to_owned),
    })
}

/// An engine setting that runs have: `KEY=VALUE`, or `KEY=` for runs without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineSetting {
    key: String,
    value: String,
}

/// The error for a text without a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` has no value; write `{0}=VALUE`, or `{0}=` for runs without the setting")]
pub struct MissingValue(String);

impl FromStr for EngineSetting {
    type Err = MissingValue;

    fn from_str(text: &str) -> Result<Self, MissingValue> {
        let (key, value) = text
            .split_once('=')
            .ok_or_else(|| MissingValue(text.to_owned()))?;
        Ok(Self {
            key: key.trim().to_owned(),
            value: value.trim().to_owned(),
        })
    }
}

impl EngineSetting {
    /// Returns whether a run has it.
    pub fn is_of(&self, row: &RunRow) -> bool {
        let found = row.draft.spec.engine.settings.value(&self.key);
        found.map_or_else(String::new, |value| value.to_string()) == self.value
    }
}
