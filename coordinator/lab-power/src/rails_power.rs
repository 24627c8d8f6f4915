//! The power of a board's own rails in the window in which the meter measured, beside the meter's. Informative.

use regatta_types::documents::SessionRails;

use regatta_lab_store::RunRow;

/// The mean power of a board's rails while LoadGen ran.
#[derive(Debug, Clone, PartialEq)]
pub struct RailsPower {
    watts: f64,
    rails: Vec<String>,
}

impl RailsPower {
    /// Returns the figure of a run, if its board has rails.
    pub fn of(run: &RunRow) -> Option<Self> {
        let telemetry = &run.outcome.as_ref()?.device_state.as_ref()?.telemetry;
        let milliwatts = telemetry.milliwatts.filter(|milliwatts| *milliwatts > 0)?;
        Some(Self {
            watts: milliwatts as f64 / 1_000.0,
            rails: telemetry.rails.clone(),
        })
    }

    /// Returns the figure beside the meter's mean in watts.
    pub(super) fn beside(&self, meter: f64) -> SessionRails {
        SessionRails {
            watts: self.watts,
            rails: self.rails.clone(),
            meter_over_rails: meter / self.watts,
        }
    }
}
