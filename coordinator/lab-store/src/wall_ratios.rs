//! The ratio of a device's power at the wall to that of its own sensors: from runs with a plug or USB meter, and from power sessions with a
//! listed meter. Nothing is stored for it: the outcomes of recorded runs and the sessions have the figures.

use regatta_types::DeviceId;
use serde::Serialize;

use super::{Devices, Result};
use crate::database::params;

/// The ratios of a device's runs: the power that a meter shows, divided by that of the device's rails in the same window.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WallRatio {
    pub runs: usize,
    /// Their median; of an even number, the mean of the middle two.
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

impl WallRatio {
    /// Summarises ratios, which are in ascending order.
    fn of(ratios: &[f64]) -> Option<Self> {
        let (least, most) = (*ratios.first()?, *ratios.last()?);
        let runs = ratios.len();
        let middle = [ratios.get((runs - 1) / 2)?, ratios.get(runs / 2)?];
        Some(Self {
            runs,
            median: (middle[0] + middle[1]) / 2.0,
            least,
            most,
        })
    }
}

impl Devices<'_> {
    /// Returns the ratios of a device's recorded runs with a plug or USB meter, or `None` if none of them had both figures.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn wall_ratio(&self, device: &DeviceId) -> Result<Option<WallRatio>> {
        self.ratios(
            device,
            "SELECT CAST(outcome -> 'device_state' -> 'telemetry' ->> 'wall_milliwatts' AS DOUBLE PRECISION)
                 / nullif(CAST(outcome -> 'device_state' -> 'telemetry' ->> 'milliwatts' AS DOUBLE PRECISION), 0) AS ratio
             FROM runs WHERE device = ?1 AND recorded IS NOT NULL",
        )
    }

    /// Returns the ratios of a device's power sessions that both checkers accept, rehearsals with a real meter included, or `None`
    /// if there is none.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn meter_ratio(&self, device: &DeviceId) -> Result<Option<WallRatio>> {
        self.ratios(
            device,
            "SELECT 1000.0 * session.mean_watts
                 / nullif(CAST(run.outcome -> 'device_state' -> 'telemetry' ->> 'milliwatts' AS DOUBLE PRECISION), 0) AS ratio
             FROM power_sessions AS session JOIN runs AS run ON run.id = session.testing
             WHERE session.device = ?1 AND session.simulated = 0 AND session.verdict IN ('pass', 'rehearsal')",
        )
    }

    /// Summarises the column `ratio` of a query. Without rails, or with rails of 0 W, it is NULL.
    fn ratios(&self, device: &DeviceId, query: &str) -> Result<Option<WallRatio>> {
        let query = format!("SELECT ratio FROM ({query}) AS ratios WHERE ratio IS NOT NULL ORDER BY ratio");
        let ratios: Vec<f64> = self
            .store
            .rows(&query, params![device.as_str()], |row| row.get(0))?;
        Ok(WallRatio::of(&ratios))
    }
}

#[cfg(test)]
mod tests {
    use regatta_types::RunId;

    use super::*;
    use crate::Store;
    use crate::{NewPowerSession, PowerSessionEnd};
    use regatta_types::documents::PowerVerdict;

    #[test]
    fn only_accepted_sessions_with_a_real_ptdaemon_count() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("regatta.db")).unwrap();
        let device: DeviceId = "ab".repeat(16).parse().unwrap();
        assert_eq!(store.devices().meter_ratio(&device).unwrap(), None);
        let sessions = [
            (Some(PowerVerdict::Pass), Some(false), Some(12.5)),
            (Some(PowerVerdict::Rehearsal), Some(false), Some(15.0)),
            (Some(PowerVerdict::Rehearsal), Some(true), Some(50.0)),
            (Some(PowerVerdict::Informative), Some(false), Some(60.0)),
            (Some(PowerVerdict::Fail), Some(false), Some(70.0)),
            (None, None, None),
        ];
        for (number, (verdict, simulated, mean_watts)) in sessions.into_iter().enumerate() {
            let (id, run) = (format!("session-{number}"), RunId::now());
            store.execute("INSERT INTO runs (id, device, benchmark, scenario, mode, engine, created, draft, phase, revision, outcome)
                     VALUES (?1, ?2, '', '', '', '', '', '{}', 'done', 1, '{\"device_state\": {\"telemetry\": {\"milliwatts\": 10000}}}')", params![run.to_string(), device.as_str()])
                .unwrap();
            let new = NewPowerSession {
                id: &id,
                meter: "lab",
                device: device.as_str(),
                benchmark: "digits",
                scenario: "Offline",
            };
            store.power_sessions().begin(new).unwrap();
            store.power_sessions().set_run(&id, false, run).unwrap();
            let end = PowerSessionEnd {
                verdict,
                simulated,
                mean_watts,
                ..PowerSessionEnd::default()
            };
            store.power_sessions().end(&id, &end).unwrap();
        }
        let ratio = store.devices().meter_ratio(&device).unwrap().unwrap();
        assert_eq!((ratio.runs, ratio.least, ratio.most), (2, 1.25, 1.5));
        let other: DeviceId = "cd".repeat(16).parse().unwrap();
        assert_eq!(store.devices().meter_ratio(&other).unwrap(), None);
    }

    #[test]
    fn median_is_the_middle_value() {
        assert_eq!(WallRatio::of(&[]), None);
        let median = |ratios: &[f64]| WallRatio::of(ratios).map(|ratio| (ratio.runs, ratio.median));
        assert_eq!(median(&[1.25]), Some((1, 1.25)));
        assert_eq!(median(&[1.25, 1.75]), Some((2, 1.5)));
        assert_eq!(median(&[1.25, 1.5, 4.0]), Some((3, 1.5)));
    }
}
