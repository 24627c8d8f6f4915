//! All units finish together: each takes full batches at its best size, and towards the end only what it can finish by
//! the earliest time at which all that is left can be done; a full batch also where that puts this end off by next to
//! nothing. Learns while it works how far off its tables are.

use std::collections::VecDeque;

use super::Policy;
use crate::{MOST_IN_FLIGHT, times::ServiceTimes};

/// Weight of the newest batch in a unit's correction factor.
const NEWEST: f64 = 0.1;
/// By which share of the longest batch a full batch may put the end off. Jitter moves it by as much, so a gain below that is
/// none, while a batch that is cut for it costs others the rest.
const NEXT_TO_NOTHING: f64 = 0.02;

/// The policy.
#[derive(Debug, Clone)]
pub struct FinishTogether {
    units: Vec<Unit>,
}

#[derive(Debug, Clone)]
struct Unit {
    times: ServiceTimes,
    /// Size of a full batch; 0 when the unit stays out.
    batch: usize,
    /// Seconds that its batches in flight are expected to take, oldest first.
    in_flight: VecDeque<f64>,
    /// When the oldest batch in flight began to be computed.
    began: f64,
    /// How much longer batches take than the table says.
    correction: f64,
}

/// Seconds of work that a unit has before it can do anything of what is asked about.
#[derive(Debug, Clone, Copy)]
struct Before {
    unit: usize,
    seconds: f64,
}

impl Unit {
    fn seconds(&self, size: usize) -> f64 {
        self.times.seconds(size) * self.correction
    }

    /// When the unit can begin something new. A batch that is overdue may end any moment.
    fn free_at(&self, now: f64) -> f64 {
        now.max(self.began + self.in_flight.iter().sum::<f64>())
    }

    /// Samples that the unit can have computed within `span` seconds.
    fn capacity(&self, span: f64) -> usize {
        self.times.capacity(self.batch, span / self.correction)
    }
}

impl FinishTogether {
    /// With a table per unit, and the largest batch that each takes; 0 keeps a unit out. When all are out, all are in.
    #[must_use]
    pub fn new(units: Vec<(ServiceTimes, usize)>) -> Self {
        let nobody = units.iter().all(|&(_, batch)| batch == 0);
        let units = units.into_iter().map(|(times, batch)| Unit {
            batch: if nobody { times.best_batch() } else { batch },
            times,
            in_flight: VecDeque::with_capacity(MOST_IN_FLIGHT),
            began: 0.0,
            correction: 1.0,
        });
        Self {
            units: units.collect(),
        }
    }

    /// Samples that all units can have computed by `end`, one of them after what it takes before.
    fn done_by(&self, end: f64, now: f64, before: Before) -> usize {
        let capacities = self.units.iter().enumerate().map(|(number, unit)| {
            let busy = if number == before.unit {
                before.seconds
            } else {
                0.0
            };
            unit.capacity(end - unit.free_at(now) - busy)
        });
        capacities.fold(0, usize::saturating_add)
    }

    /// The earliest time by which `remaining` samples can be done, to a ten-thousandth of the span.
    fn earliest_end(&self, now: f64, remaining: usize, before: Before) -> f64 {
        let mut span = self.longest_batch();
        while self.done_by(now + span, now, before) < remaining {
            span *= 2.0;
        }
        let (mut too_early, mut enough) = (0.0, span);
        for _ in 0..14 {
            let middle = f64::midpoint(too_early, enough);
            if self.done_by(now + middle, now, before) < remaining {
                too_early = middle;
            } else {
                enough = middle;
            }
        }
        now + enough
    }

    /// What `unit` takes near the end.
    fn last_portion(&self, number: usize, now: f64, remaining: usize) -> usize {
        let unit = &self.units[number];
        let full = unit.batch.min(remaining);
        let seconds = |size: usize| if size > 0 { unit.seconds(size) } else { 0.0 };
        let taking = |size: usize| Before {
            unit: number,
            seconds: seconds(size),
        };
        let end = self.earliest_end(now, remaining, taking(0));
        let in_time = unit.capacity(end - unit.free_at(now)).min(full);
        if in_time == full {
            return full;
        }
        let with_full =
            (unit.free_at(now) + seconds(full)).max(self.earliest_end(now, remaining - full, taking(full)));
        if with_full <= end + NEXT_TO_NOTHING * self.longest_batch() {
            full
        } else {
            in_time
        }
    }

    fn longest_batch(&self) -> f64 {
        let taking_part = self.units.iter().filter(|unit| unit.batch > 0);
        taking_part
            .map(|unit| unit.seconds(unit.batch))
            .fold(1e-9, f64::max)
    }

    /// Whether so much is left that every unit has at least three more full batches to do.
    fn end_is_far(&self, remaining: usize) -> bool {
        let span = 3.0 * self.longest_batch();
        let soon: f64 = self
            .units
            .iter()
            .filter(|unit| unit.batch > 0)
            .map(|unit| span * unit.batch as f64 / unit.seconds(unit.batch))
            .sum();
        remaining as f64 > soon
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
        // A single stall must not make a unit look ten times slower than it is.
        let off = (took / expected).clamp(0.5, 2.0);
        unit.correction *= 1.0 + NEWEST * (off - 1.0);
    }
}
