//! What a policy should know of the units before the timed window: their times alone and together, and who had better
//! stay out. Measures through a [`Stand`], so that a warm-up on silicon and one in virtual time are the same code.

use crate::{
    board::Board,
    policy::FinishTogether,
    split::{self, Split},
    times::ServiceTimes,
    virtual_time,
};

/// Units that can be measured.
pub trait Stand {
    /// Why measuring failed.
    type Error;

    /// How many units there are.
    fn units(&self) -> usize;

    /// The batch sizes of a unit that are worth measuring: ascending, the largest that it may take last.
    fn sizes(&self, unit: usize) -> Vec<usize>;

    /// Has each unit whose size is not 0 compute batches of that size without pause, all at once, and gives the seconds
    /// between two batches of each; those of size 0 are not looked at. `pipelined` keeps all of a unit's streams busy.
    ///
    /// # Errors
    /// When a unit fails.
    fn measure(&mut self, sizes: &[usize], pipelined: bool) -> Result<Vec<f64>, Self::Error>;
}

/// What was learnt.
#[derive(Debug, Clone, PartialEq)]
pub struct Learnt {
    /// Times per unit, each alone.
    pub alone: Vec<ServiceTimes>,
    /// Sets of units that were measured together: who was in, and how many times longer each took than alone.
    pub together: Vec<(Vec<bool>, Vec<f64>)>,
}

/// Sets of units are measured all while there are at most this many; then only all together.
const ALL_SETS_UP_TO: usize = 4;

/// By which share a smaller batch must do more than the largest, which somebody has chosen, to be taken instead.
const CLEARLY: f64 = 0.01;

/// The size of a unit's full batches.
fn usual_batch(times: &ServiceTimes) -> usize {
    times.largest_good_batch(CLEARLY)
}

/// Measures every unit alone at every size, then sets of units together.
///
/// # Errors
/// When a unit fails.
pub fn learn<S: Stand>(stand: &mut S, pipelined: bool) -> Result<Learnt, S::Error> {
    let units = stand.units();
    let mut alone = Vec::with_capacity(units);
    for unit in 0..units {
        let mut points = Vec::new();
        for size in stand.sizes(unit) {
            let mut sizes = vec![0; units];
            sizes[unit] = size;
            points.push((size, stand.measure(&sizes, pipelined)?[unit].max(1e-9)));
        }
        // Sizes ascend and times are positive; without any size the unit counts as one that takes a second.
        alone.push(ServiceTimes::new(points).unwrap_or_else(|_| one_second()));
    }
    let mut together = Vec::new();
    for set in sets(units) {
        let sizes: Vec<usize> = set
            .iter()
            .zip(&alone)
            .map(|(&is_in, times)| if is_in { usual_batch(times) } else { 0 })
            .collect();
        let seconds = stand.measure(&sizes, pipelined)?;
        let longer = |unit: usize| (seconds[unit] / alone[unit].seconds(sizes[unit])).max(1.0);
        let longer = (0..units)
            .map(|unit| if set[unit] { longer(unit) } else { 1.0 })
            .collect();
        together.push((set, longer));
    }
    Ok(Learnt { alone, together })
}

fn one_second() -> ServiceTimes {
    #[expect(clippy::expect_used, reason = "one positive point is a table")]
    ServiceTimes::new(vec![(1, 1.0)]).expect("a table")
}

/// Sets of at least two units.
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

impl Learnt {
    /// Samples per second of a set of units, each at its usual batch.
    fn rate(&self, set: &[bool], longer: &[f64]) -> f64 {
        let units = self.alone.iter().zip(set).zip(longer);
        units
            .filter(|((_, is_in), _)| **is_in)
            .map(|((times, _), longer)| {
                let batch = usual_batch(times);
                batch as f64 / times.seconds(batch) / longer
            })
            .sum()
    }

    /// Every unit by itself, then the sets that were measured.
    fn candidates(&self) -> Vec<(Vec<bool>, Vec<f64>)> {
        let units = self.alone.len();
        let singles =
            (0..units).map(|only| ((0..units).map(|unit| unit == only).collect(), vec![1.0; units]));
        singles.chain(self.together.iter().cloned()).collect()
    }

    /// The policy for a long query: the units that do most together, with the times that they then have.
    #[must_use]
    pub fn offline(&self) -> FinishTogether {
        let best = self.candidates().into_iter().max_by(|one, other| {
            self.rate(&one.0, &one.1)
                .total_cmp(&self.rate(&other.0, &other.1))
        });
        let (set, longer) = best.unwrap_or_default();
        let units = self.alone.iter().zip(set.iter().zip(&longer));
        FinishTogether::new(
            units
                .map(|(times, (&is_in, &longer))| {
                    (times.scaled(longer), if is_in { usual_batch(times) } else { 0 })
                })
                .collect(),
        )
    }

    /// How to cut a query of `samples` that nothing follows, so that its last sample is done earliest.
    #[must_use]
    pub fn split(&self, samples: usize) -> Split {
        split::best(&self.alone, &self.candidates(), samples)
    }
}

/// A modelled board as a stand.
#[derive(Debug)]
pub struct VirtualStand<'a> {
    /// The board.
    pub board: &'a Board,
    /// Largest batch that each unit may take.
    pub most: Vec<usize>,
    /// Batches of each unit per measurement.
    pub batches: usize,
    /// Seed of the first measurement's jitter; each has one of its own.
    pub seed: u64,
}

impl Stand for VirtualStand<'_> {
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

/// 1, 2, 4 ... and `most` itself.
#[must_use]
pub fn doublings(most: usize) -> Vec<usize> {
    let doubled = std::iter::successors(Some(1_usize), |size| size.checked_mul(2));
    doubled
        .take_while(|&size| size < most)
        .chain([most.max(1)])
        .collect()
}
