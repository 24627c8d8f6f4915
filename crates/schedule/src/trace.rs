//! A board out of learnt times: what a warm-up has found, as a table that takes the place of an assumed one.

use crate::{
    board::{Board, Unit},
    learn::Learnt,
    times::ServiceTimes,
};

/// A unit that was measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measured {
    /// Its name.
    pub name: String,
    /// Batches that it had in flight.
    pub streams: usize,
}

impl Learnt {
    /// The board that was measured. A unit's times are those between two batches with all its streams full, so they hold what
    /// of the copies the unit does not hide, and copies of their own are 0. The spread of the times was not measured: no jitter.
    #[must_use]
    pub fn board(&self, name: String, units: Vec<Measured>) -> Board {
        let units = units.into_iter().zip(&self.alone).enumerate();
        let units = units.map(|(number, (unit, times))| Unit {
            name: unit.name,
            times: to_the_nanosecond(times),
            batch: times.max_batch(),
            copy: 0.0,
            streams: unit.streams,
            slows_others: self.slows_others(number),
        });
        Board {
            name,
            units: units.collect(),
            jitter: 0.0,
        }
    }

    /// By which share `unit` slows each other one: the mean over the sets that it was measured in.
    ///
    /// Where all of a set's `n` units slow the others, unit `v` is slowed by the sum of their shares without its own. So all
    /// slowdowns together are `n - 1` times the sum of all shares, and a unit's own share is that sum less what slows it.
    fn slows_others(&self, unit: usize) -> f64 {
        let with_it = self
            .together
            .iter()
            .filter(|(set, _)| set.get(unit) == Some(&true));
        let shares = with_it.map(|(set, longer)| {
            let slowed = set.iter().zip(longer).filter(|(is_in, _)| **is_in);
            let (count, sum) = slowed.fold((0, 0.0), |(count, sum), (_, longer)| {
                (count + 1, sum + longer - 1.0)
            });
            sum / f64::from((count - 1).max(1)) - (longer[unit] - 1.0)
        });
        let (count, sum) = shares.fold((0, 0.0), |(count, sum), share| (count + 1, sum + share));
        let mean = sum / f64::from(count.max(1));
        (mean.max(0.0) * 1e4).round() / 1e4
    }
}

/// The same times without digits that no clock gives.
fn to_the_nanosecond(times: &ServiceTimes) -> ServiceTimes {
    let points = times
        .sizes()
        .map(|size| (size, (times.seconds(size) * 1e9).round() / 1e9));
    // Of less than half a nanosecond nothing is left, which is no time.
    ServiceTimes::new(points.collect()).unwrap_or_else(|_| times.clone())
}
