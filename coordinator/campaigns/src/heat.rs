//! How much cells heat a device, from what their plan says, and the heat of each device's last attempt. It decides nothing and reads no
//! sensor: [`super::placement`] spreads hot cells, and gates wait for temperatures.

use std::collections::BTreeMap;

use regatta_types::{DeviceId, Scenario, documents::PowerSetting};

use regatta_lab_runs::{StateWords, Words};
use regatta_lab_store::{AttemptRow, Combination};

/// The heat of a combination, from 0 to 3. Only the order of two values has a meaning.
pub(super) type Heat = u8;

/// Returns the heat of a combination's runs. Offline and Server keep a device busy without pauses. The state MaxQ limits its power.
pub(super) fn heat(combination: &Combination) -> Heat {
    let Ok(words) = serde_json::from_str::<Words>(&combination.words) else {
        return 0;
    };
    let is_busy = |word: &String| matches!(word.parse(), Ok(Scenario::Offline | Scenario::Server));
    let is_limited =
        matches!(&words.state, Some(StateWords::Preset(name)) if name == PowerSetting::MaxQ.as_str());
    2 * Heat::from(words.scenario.iter().any(is_busy)) + Heat::from(!is_limited)
}

/// An attempt's place in time: when it was requested, its cell and its number.
type AttemptTime = (String, u64, u64);

/// The heat of each device's attempts, by time.
#[derive(Debug, Default)]
pub(super) struct DeviceHeat {
    attempts: BTreeMap<DeviceId, BTreeMap<AttemptTime, Heat>>,
}

impl DeviceHeat {
    /// Adds an attempt.
    pub(super) fn add(&mut self, attempt: &AttemptRow, heat: Heat) {
        let attempts = self.attempts.entry(attempt.device.clone()).or_default();
        attempts.insert(time(attempt), heat);
    }

    /// Takes out an attempt that was added.
    pub(super) fn remove(&mut self, attempt: &AttemptRow) {
        if let Some(attempts) = self.attempts.get_mut(&attempt.device) {
            attempts.remove(&time(attempt));
        }
    }

    /// Returns the heat of a device's last attempt. `None` before its first one.
    pub(super) fn last(&self, device: &DeviceId) -> Option<Heat> {
        let (_, heat) = self.attempts.get(device)?.last_key_value()?;
        Some(*heat)
    }
}

fn time(attempt: &AttemptRow) -> AttemptTime {
    (attempt.requested.clone(), attempt.cell, attempt.number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_lab_store::Placement;

    #[test]
    fn offline_at_full_power_is_the_hottest() {
        let of = |words: &str| {
            heat(&Combination {
                number: 0,
                words: words.to_owned(),
                variant: None,
                audit: None,
                meter: None,
                placement: Placement::Any,
                priority: 0,
                devices: Vec::new(),
            })
        };
        let words = |scenario, state| {
            of(&format!(
                r#"{{ "benchmark": "digits", "scenario": ["{scenario}"]{state} }}"#
            ))
        };
        let limited = r#", "state": "MaxQ""#;
        assert_eq!(
            [
                words("SingleStream", limited),
                words("MultiStream", ""),
                words("Offline", limited),
                words("Server", "")
            ],
            [0, 1, 2, 3]
        );
        assert_eq!(of("{}"), 0, "words that cannot be read");
    }
}
