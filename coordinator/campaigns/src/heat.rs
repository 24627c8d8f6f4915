//! How much cells heat a device, from what their plan says, and the heat of each device's last attempt. It decides nothing and reads no
//! sensor: [`super::placement`] spreads hot cells, and gates wait for temperatures.

use std::collections::BTreeMap;

use regatta_types::{DeviceId, Scenario};

use regatta_lab_store::{AttemptRow, Combination, StatePreset};

/// The heat of a combination, from 0 to 3. Only the order of two values has a meaning.
pub(super) type Heat = u8;

/// Returns the heat of a combination's runs. Offline and Server keep a device busy without pauses. The state MaxQ limits its power.
pub(super) fn heat(combination: &Combination) -> Heat {
    let request = &combination.request;
    let is_busy = matches!(request.scenario, Scenario::Offline | Scenario::Server);
    let state = request.state.as_ref();
    let is_limited = state.is_some_and(|state| state.preset == Some(StatePreset::MaxQ));
    2 * Heat::from(is_busy) + Heat::from(!is_limited)
}

/// An attempt's place in time. The order of fields is that of attempts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct AttemptTime {
    requested: String,
    cell: u64,
    number: u64,
}

/// The heat of each device's attempts, by time.
#[derive(Debug, Default)]
pub(super) struct DeviceHeat {
    attempts: BTreeMap<DeviceId, BTreeMap<AttemptTime, Heat>>,
}

impl DeviceHeat {
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
    AttemptTime {
        requested: attempt.requested.clone(),
        cell: attempt.cell,
        number: attempt.number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_lab_store::{Placement, RunRequest};

    #[test]
    fn offline_at_full_power_is_the_hottest() {
        let of = |scenario: Scenario, state: Option<StatePreset>| {
            heat(&Combination {
                number: 0,
                request: RunRequest {
                    state: state.map(Into::into),
                    ..RunRequest::new("digits", scenario)
                },
                variant: None,
                audit: None,
                meter: None,
                placement: Placement::Any,
                priority: 0,
                devices: Vec::new(),
            })
        };
        let limited = Some(StatePreset::MaxQ);
        assert_eq!(
            [
                of(Scenario::SingleStream, limited),
                of(Scenario::MultiStream, None),
                of(Scenario::Offline, limited),
                of(Scenario::Server, Some(StatePreset::MaxP))
            ],
            [0, 1, 2, 3]
        );
    }
}
