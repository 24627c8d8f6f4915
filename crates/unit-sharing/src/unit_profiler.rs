//! The profiling of units before the timed window: their times alone and together, from which a policy is chosen. It
//! measures through a [`UnitProfiler`], so that the warm-up on hardware and the simulated one share this code.

use crate::{
    board_model::BoardModel,
    policy::FinishTogether,
    query_split::{self, QuerySplit},
    service_times::ServiceTimes,
    virtual_time,
};

/// A profiler, which measures the units of one board.
pub trait UnitProfiler {
    /// The error of a measurement.
    type Error;

    fn units(&self) -> usize;

    /// Returns the batch sizes to measure on a unit, ascending to the largest that it may take.
    fn sizes(&self, unit: usize) -> Vec<usize>;

    /// Lets all units with a size above 0 compute batches of that size at the same time and without pause. Returns the seconds
    /// between two batches of each unit; values of units with size 0 are ignored. `pipelined` keeps all streams of a unit busy.
    ///
    /// # Errors
    /// When a unit fails to compute.
    fn measure(&mut self, sizes: &[usize], pipelined: bool) -> Result<Vec<f64>, Self::Error>;
}

/// The measured times of a board's units.
#[derive(Debug, Clone, PartialEq)]
pub struct UnitProfiles {
    /// The service times of each unit while it computes alone.
    pub alone: Vec<ServiceTimes>,
    /// The sets of units that were measured together: the participants, and the factor by which each took longer than alone.
    pub together: Vec<(Vec<bool>, Vec<f64>)>,
}

/// The largest number of units for which all sets are measured. Above it, only the set of all units is.
const ALL_SETS_UP_TO: usize = 4;

/// The share by which a smaller batch must be faster than the configured largest one to replace it.
const MIN_GAIN: f64 = 0.01;

/// Returns the size of a unit's full batches.
fn full_batch(times: &ServiceTimes) -> usize {
    times.largest_good_batch(MIN_GAIN)
}

/// Measures every unit alone at every size, then sets of units together.
///
/// # Errors
/// When a unit fails to compute.
pub fn profile_units<S: UnitProfiler>(profiler: &mut S, pipelined: bool) -> Result<UnitProfiles, S::Error> {
    let units = profiler.units();
    let mut alone = Vec::with_capacity(units);
    for unit in 0..units {
        let mut points = Vec::new();
        for size in profiler.sizes(unit) {
            let mut sizes = vec![0; units];
            sizes[unit] = size;
            points.push((size, profiler.measure(&sizes, pipelined)?[unit].max(1e-9)));
        }
        // Sizes ascend and times are positive, so only an empty list fails: such a unit counts as taking a second.
        alone.push(ServiceTimes::new(points).unwrap_or_else(|_| fallback_times()));
    }
    let mut together = Vec::new();
    for set in sets(units) {
        let sizes: Vec<usize> = set
            .iter()
            .zip(&alone)
            .map(|(&takes_part, times)| if takes_part { full_batch(times) } else { 0 })
            .collect();
        let seconds = profiler.measure(&sizes, pipelined)?;
        let slowdown = |unit: usize| (seconds[unit] / alone[unit].seconds(sizes[unit])).max(1.0);
        let slowdown = (0..units)
            .map(|unit| if set[unit] { slowdown(unit) } else { 1.0 })
            .collect();
        together.push((set, slowdown));
    }
    Ok(UnitProfiles { alone, together })
}

fn fallback_times() -> ServiceTimes {
    #[expect(clippy::expect_used, reason = "one positive point is a table")]
    ServiceTimes::new(vec![(1, 1.0)]).expect("a table")
}

/// Returns the sets of at least two units to measure.
fn sets(units: usize) -> Vec<Vec<bool>> {
    if units > ALL_SETS_UP_TO {
        return vec![vec![true; units]];
    }
    let of = |set: u32| (0..units).map(move |unit| set & 1 << unit != 0).collect();
    (1..1_u32 << units)
        .filter(|set| set.count_ones() > 1)
        .map(of)
        .collect()
}

impl UnitProfiles {
    /// Returns the samples per second of a set of units with full batches.
    fn rate(&self, set: &[bool], slowdown: &[f64]) -> f64 {
        let units = self.alone.iter().zip(set).zip(slowdown);
        units
            .filter(|((_, takes_part), _)| **takes_part)
            .map(|((times, _), slowdown)| {
                let batch = full_batch(times);
                batch as f64 / times.seconds(batch) / slowdown
            })
            .sum()
    }

    /// Returns every single unit, then the measured sets.
    fn candidates(&self) -> Vec<(Vec<bool>, Vec<f64>)> {
        let units = self.alone.len();
        let singles =
            (0..units).map(|only| ((0..units).map(|unit| unit == only).collect(), vec![1.0; units]));
        singles.chain(self.together.iter().cloned()).collect()
    }

    /// Returns the policy for an Offline query: the set of units with the highest throughput, with their times in that set.
    #[must_use]
    pub fn offline(&self) -> FinishTogether {
        let best = self.candidates().into_iter().max_by(|one, other| {
            self.rate(&one.0, &one.1)
                .total_cmp(&self.rate(&other.0, &other.1))
        });
        let (set, slowdown) = best.unwrap_or_default();
        let units = self.alone.iter().zip(set.iter().zip(&slowdown));
        FinishTogether::new(
            units
                .map(|(times, (&takes_part, &slowdown))| {
                    (
                        times.scaled(slowdown),
                        if takes_part { full_batch(times) } else { 0 },
                    )
                })
                .collect(),
        )
    }

    /// Returns the split of a query of `samples` whose last sample is done first, when no other query follows at once.
    #[must_use]
    pub fn split(&self, samples: usize) -> QuerySplit {
        query_split::best_split(&self.alone, &self.candidates(), samples)
    }
}

/// A profiler that simulates a board model.
#[derive(Debug)]
pub struct SimulatedProfiler<'a> {
    pub board: &'a BoardModel,
    /// The largest batch that each unit may take.
    pub most: Vec<usize>,
    /// The batches per unit in each measurement.
    pub batches: usize,
    /// The seed of the first measurement's jitter. Each further measurement uses the next seed.
    pub seed: u64,
}

impl UnitProfiler for SimulatedProfiler<'_> {
    type Error = std::convert::Infallible;

    fn units(&self) -> usize {
        self.board.units.len()
    }

    fn sizes(&self, unit: usize) -> Vec<usize> {
        doublings(self.most[unit].min(self.board.units[unit].times.max_batch()))
    }

    fn measure(&mut self, sizes: &[usize], pipelined: bool) -> Result<Vec<f64>, Self::Error> {
        self.seed = self.seed.wrapping_add(1);
        Ok(virtual_time::steady(
            self.board,
            sizes,
            pipelined,
            self.batches,
            self.seed,
        ))
    }
}

/// Returns 1, 2, 4 and so on below `most`, then `most` itself.
#[must_use]
pub fn doublings(most: usize) -> Vec<usize> {
    let doubled = std::iter::successors(Some(1_usize), |size| size.checked_mul(2));
    doubled
        .take_while(|&size| size < most)
        .chain([most.max(1)])
        .collect()
}
