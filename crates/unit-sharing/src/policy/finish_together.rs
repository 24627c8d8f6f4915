//! The policy with which all units finish together. Each unit takes full batches of its best size. Near the end it only takes
//! what it can finish by the earliest possible end of the query. It takes a full batch if that hardly delays the end. The policy
//! corrects its service times while it runs.

use std::collections::VecDeque;

use super::Policy;
use crate::{MAX_IN_FLIGHT, service_times::ServiceTimes};

/// The weight of the newest batch in a unit's correction factor.
const NEWEST_WEIGHT: f64 = 0.1;
/// The share of the longest batch by which a full batch may delay the end. Jitter is of the same size, so that avoiding a
/// smaller delay gains nothing, while the rest of a cut batch costs time on another unit.
const ACCEPTED_DELAY: f64 = 0.02;

/// The policy with which all units finish together.
#[derive(Debug, Clone)]
pub struct FinishTogether {
    units: Vec<UnitState>,
}

#[derive(Debug, Clone)]
struct UnitState {
    times: ServiceTimes,
    /// The size of a full batch; 0 for a unit that does not take part.
    batch: usize,
    /// The expected seconds of the batches in flight, oldest first.
    in_flight: VecDeque<f64>,
    /// The time at which the unit began to compute the oldest batch in flight.
    began: f64,
    /// The factor by which batches take longer than in the table.
    correction: f64,
}

/// The seconds of work that one unit has to do before the remaining samples.
#[derive(Debug, Clone, Copy)]
struct EarlierWork {
    unit: usize,
    seconds: f64,
}

impl UnitState {
    fn seconds(&self, size: usize) -> f64 {
        self.times.seconds(size) * self.correction
    }

    /// Returns the time at which the unit can begin something new. An overdue batch counts as ending now.
    fn free_at(&self, now: f64) -> f64 {
        now.max(self.began + self.in_flight.iter().sum::<f64>())
    }

    /// Returns the samples that the unit can compute within `span` seconds.
    fn capacity(&self, span: f64) -> usize {
        self.times.capacity(self.batch, span / self.correction)
    }
}

impl FinishTogether {
    /// Creates the policy from each unit's table and largest batch; 0 excludes a unit. If all are excluded, all take part.
    #[must_use]
    pub fn new(units: Vec<(ServiceTimes, usize)>) -> Self {
        let all_excluded = units.iter().all(|&(_, batch)| batch == 0);
        let units = units.into_iter().map(|(times, batch)| UnitState {
            batch: if all_excluded { times.best_batch() } else { batch },
            times,
            in_flight: VecDeque::with_capacity(MAX_IN_FLIGHT),
            began: 0.0,
            correction: 1.0,
        });
        Self {
            units: units.collect(),
        }
    }

    /// Returns the samples that all units can compute by `end`, where one of them has other work first.
    fn done_by(&self, end: f64, now: f64, earlier: EarlierWork) -> usize {
        let capacities = self.units.iter().enumerate().map(|(number, unit)| {
            let busy = if number == earlier.unit {
                earlier.seconds
            } else {
                0.0
            };
            unit.capacity(end - unit.free_at(now) - busy)
        });
        capacities.fold(0, usize::saturating_add)
    }

    /// Returns the earliest time at which `remaining` samples can be done, accurate to a ten-thousandth of the span.
    fn earliest_end(&self, now: f64, remaining: usize, earlier: EarlierWork) -> f64 {
        let mut span = self.longest_batch();
        while self.done_by(now + span, now, earlier) < remaining {
            span *= 2.0;
        }
        let (mut too_early, mut enough) = (0.0, span);
        for _ in 0..14 {
            let middle = f64::midpoint(too_early, enough);
            if self.done_by(now + middle, now, earlier) < remaining {
                too_early = middle;
            } else {
                enough = middle;
            }
        }
        now + enough
    }

    /// Returns the samples that a unit takes near the end.
    fn last_portion(&self, number: usize, now: f64, remaining: usize) -> usize {
        let unit = &self.units[number];
        let full = unit.batch.min(remaining);
        let seconds = |size: usize| if size > 0 { unit.seconds(size) } else { 0.0 };
        let work_of = |size: usize| EarlierWork {
            unit: number,
            seconds: seconds(size),
        };
        let end = self.earliest_end(now, remaining, work_of(0));
        let portion = unit.capacity(end - unit.free_at(now)).min(full);
        if portion == full {
            return full;
        }
        let end_with_full =
            (unit.free_at(now) + seconds(full)).max(self.earliest_end(now, remaining - full, work_of(full)));
        if end_with_full <= end + ACCEPTED_DELAY * self.longest_batch() {
            full
        } else {
            portion
        }
    }

    fn longest_batch(&self) -> f64 {
        let participants = self.units.iter().filter(|unit| unit.batch > 0);
        participants
            .map(|unit| unit.seconds(unit.batch))
            .fold(1e-9, f64::max)
    }

    /// Returns whether enough samples remain for at least three more full batches on every unit.
    fn end_is_far(&self, remaining: usize) -> bool {
        let span = 3.0 * self.longest_batch();
        let near_end: f64 = self
            .units
            .iter()
            .filter(|unit| unit.batch > 0)
            .map(|unit| span * unit.batch as f64 / unit.seconds(unit.batch))
            .sum();
        remaining as f64 > near_end
    }
}

impl Policy for FinishTogether {
    fn take(&mut self, unit: usize, now: f64, remaining: usize) -> usize {
        let size = if self.end_is_far(remaining) {
            self.units[unit].batch
        } else {
            self.last_portion(unit, now, remaining)
        };
        if size > 0 {
            let unit = &mut self.units[unit];
            if unit.in_flight.is_empty() {
                unit.began = now;
            }
            unit.in_flight.push_back(unit.seconds(size));
        }
        size
    }

    fn done(&mut self, unit: usize, now: f64) {
        let unit = &mut self.units[unit];
        let Some(expected) = unit.in_flight.pop_front() else {
            return;
        };
        let took = (now - unit.began).max(0.0);
        unit.began = now;
        // Limited, so that a single stall does not make a unit look ten times slower.
        let deviation = (took / expected).clamp(0.5, 2.0);
        unit.correction *= 1.0 + NEWEST_WEIGHT * (deviation - 1.0);
    }
}
