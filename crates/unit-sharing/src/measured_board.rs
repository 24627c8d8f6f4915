//! A board model from the profiles that a warm-up has measured. It replaces a table of assumed values.

use crate::{
    board_model::{BoardModel, UnitModel},
    service_times::ServiceTimes,
    unit_profiler::UnitProfiles,
};

/// The name and streams of a measured unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeasuredUnit {
    /// The unit's name.
    pub name: String,
    /// The number of batches that were in flight.
    pub streams: usize,
}

impl UnitProfiles {
    /// Creates the model of the measured board. Its times were measured between two batches with all streams busy. They
    /// include the part of the copies that computing does not hide, so that `copy` is 0. Jitter was not measured and is 0.
    #[must_use]
    pub fn board(&self, name: String, units: Vec<MeasuredUnit>) -> BoardModel {
        let units = units.into_iter().zip(&self.alone).enumerate();
        let units = units.map(|(number, (unit, times))| UnitModel {
            name: unit.name,
            times: to_the_nanosecond(times),
            batch: times.max_batch(),
            copy: 0.0,
            streams: unit.streams,
            slows_others: self.slows_others(number),
        });
        BoardModel {
            name,
            units: units.collect(),
            jitter: 0.0,
        }
    }

    /// Returns the relative slowdown that `unit` causes on every other unit: the mean over its measured sets.
    ///
    /// In a set of `n` units, unit `v` is slowed by the sum of all shares except its own. The sum of all slowdowns is
    /// therefore `n - 1` times the sum of all shares, and a unit's share is the sum of all shares minus its own slowdown.
    fn slows_others(&self, unit: usize) -> f64 {
        let with_it = self
            .together
            .iter()
            .filter(|(set, _)| set.get(unit) == Some(&true));
        let shares = with_it.map(|(set, slowdown)| {
            let slowed = set.iter().zip(slowdown).filter(|(takes_part, _)| **takes_part);
            let (count, sum) = slowed.fold((0, 0.0), |(count, sum), (_, slowdown)| {
                (count + 1, sum + slowdown - 1.0)
            });
            sum / f64::from((count - 1).max(1)) - (slowdown[unit] - 1.0)
        });
        let (count, sum) = shares.fold((0, 0.0), |(count, sum), share| (count + 1, sum + share));
        let mean = sum / f64::from(count.max(1));
        (mean.max(0.0) * 1e4).round() / 1e4
    }
}

/// Rounds times to nanoseconds, because no clock gives more digits.
fn to_the_nanosecond(times: &ServiceTimes) -> ServiceTimes {
    let points = times
        .sizes()
        .map(|size| (size, (times.seconds(size) * 1e9).round() / 1e9));
    // A time below half a nanosecond would become 0, which is invalid; such a table stays unrounded.
    ServiceTimes::new(points.collect()).unwrap_or_else(|_| times.clone())
}
