//! Flags that select runs by their properties, for every command that takes many runs.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp, civil::Date};
use regatta_catalogue::catalogue::Catalogue;
use regatta_text::HumanDuration;
use regatta_types::{DeviceId, Scenario};

use super::{CampaignRuns, EngineSetting, any_devices, campaign_runs, devices_of};
use crate::wording::{run_text, time_zone};
use regatta_lab_runs::vocabulary;
use regatta_lab_store::{RunRow, StatePreset, Store, lab_error::LabError, workspace::Workspace};

/// Flags that select runs by their devices.
#[derive(Debug, Default, clap::Args)]
pub struct RunDevices {
    /// Runs of these devices, by name or id, comma separated
    #[arg(long, value_name = "DEVICE", value_delimiter = ',')]
    device: Vec<String>,
    /// Runs of devices with one of these labels, comma separated
    #[arg(long, value_name = "LABEL", value_delimiter = ',')]
    device_label: Vec<String>,
}

impl RunDevices {
    /// Returns the selected devices, removed ones too, because their runs are kept. Empty when no flag is used.
    pub fn find(&self, store: &Store) -> Result<BTreeSet<DeviceId>, LabError> {
        let mut found = any_devices(store, &self.device)?;
        let known = store.labels().all()?;
        for label in &self.device_label {
            found.extend(devices_of(label, &known)?.iter().cloned());
        }
        Ok(found)
    }
}

/// Flags that select runs.
#[derive(Debug, Default, clap::Args)]
pub struct RunFilter {
    #[command(flatten)]
    pub devices: RunDevices,
    /// Runs of these benchmarks, comma separated
    #[arg(long, value_delimiter = ',')]
    pub benchmark: Vec<String>,
    /// Runs in these scenarios, comma separated
    #[arg(long, value_parser = vocabulary::scenario(), ignore_case = true, value_delimiter = ',')]
    pub scenario: Vec<Scenario>,
    /// Runs of these campaigns, comma separated; NAME/VARIANT selects one variant of the settings
    #[arg(long, value_name = "CAMPAIGN", value_delimiter = ',')]
    pub campaign: Vec<String>,
    /// Runs with this engine setting, KEY=VALUE, or without it, KEY=; can be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<EngineSetting>,
    /// Runs with one of these requested device states, comma separated
    #[arg(long, value_name = "STATE", value_parser = vocabulary::state(), ignore_case = true, value_delimiter = ',')]
    pub state: Vec<StatePreset>,
    /// Runs requested since: 90m, 2h or 7d ago, or a date such as 2026-11-21
    #[arg(long, value_name = "TIME", value_parser = since)]
    pub since: Option<Timestamp>,
}

/// The error for a text that is not a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write how long ago, such as 90m, 2h or 7d, or a date such as 2026-11-21")]
pub struct InvalidTime;

/// Parses a time: a date in the zone of texts, a timestamp, or a duration before now.
///
/// # Errors
/// Returns [`InvalidTime`] when the text is none of these.
pub fn since(text: &str) -> Result<Timestamp, InvalidTime> {
    if let Ok(date) = text.parse::<Date>()
        && let Ok(begin) = date.to_zoned(time_zone().clone())
    {
        return Ok(begin.timestamp());
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    text.parse::<HumanDuration>()
        .ok()
        .and_then(|ago| i64::try_from(ago.millis()).ok())
        .and_then(|ago| {
            Timestamp::now()
                .checked_sub(SignedDuration::from_millis(ago))
                .ok()
        })
        .ok_or(InvalidTime)
}

impl RunFilter {
    /// Returns the filter of the runs that the flags select. Unknown names are errors.
    pub fn selection<'a>(
        &'a self,
        workspace: &Workspace,
        store: &Store,
        all: &[RunRow],
    ) -> Result<impl Fn(&RunRow) -> bool + use<'a>, LabError> {
        let devices = self.devices.find(store)?;
        let mut benchmarks = BTreeSet::new();
        if !self.benchmark.is_empty() {
            let catalogue = Catalogue::read(Some(&workspace.configs())).map_err(LabError::usage)?;
            for name in &self.benchmark {
                // A benchmark whose file was removed still has runs.
                let benchmark = match catalogue.benchmark(name) {
                    Ok(benchmark) => benchmark.name.clone(),
                    Err(_) if all.iter().any(|row| row.benchmark == *name) => name.clone(),
                    Err(error) => return Err(LabError::usage(error)),
                };
                benchmarks.insert(benchmark);
            }
        }
        let campaigns = self.campaign.iter().map(|words| campaign_runs(store, words));
        let campaigns = campaigns.collect::<Result<Vec<CampaignRuns>, _>>()?;
        Ok(move |row: &RunRow| {
            let created = || row.draft.spec.created.parse::<Timestamp>();
            (devices.is_empty() || devices.contains(&row.device))
                && (benchmarks.is_empty() || benchmarks.contains(&row.benchmark))
                && (self.scenario.is_empty() || self.scenario.contains(&row.scenario))
                && (campaigns.is_empty() || campaigns.iter().any(|campaign| campaign.contains(row)))
                && self.set.iter().all(|setting| setting.is_of(row))
                && (self.state.is_empty()
                    || self
                        .state
                        .iter()
                        .any(|state| state.as_str() == run_text::device_state(row)))
                && self
                    .since
                    .is_none_or(|since| created().is_ok_and(|created| created >= since))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_date_a_timestamp_or_how_long_ago() {
        assert_eq!(since("2026-11-21").unwrap().to_string(), "2026-11-21T00:00:00Z");
        assert_eq!(
            since("2026-11-21T10:00:00Z").unwrap().to_string(),
            "2026-11-21T10:00:00Z"
        );
        let since_then = since("2h").unwrap();
        let ago = Timestamp::now().duration_since(since_then);
        assert!((7200..7260).contains(&ago.as_secs()), "{ago:?}");
        assert!(since("yesterday").is_err());
    }
}
