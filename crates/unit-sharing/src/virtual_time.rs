//! Simulations of a policy on a board model in virtual time: hours of samples in milliseconds, repeatable from a seed.
//!
//! As in [`BoardSimulator`], the host's own time, changing clocks and exhausted memory are not modelled.

use crate::{
    board_model::BoardModel,
    board_simulator::BoardSimulator,
    policy::{FixedPortions, Policy},
};

/// The error when a policy gives no unit any samples although all units are idle and samples remain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the policy stalled with {0} samples left: it gave them to no unit although all were idle")]
pub struct PolicyStalled(pub usize);

/// The result of a simulated query.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatedQuery {
    /// The seconds until the last sample was done.
    pub seconds: f64,
    /// The factor by which jitter stretched each unit's work; 1 for a unit without work.
    pub stretched: Vec<f64>,
}

/// Simulates an Offline query, whose samples are all available at the start. Returns the seconds until all are done.
///
/// # Errors
/// [`PolicyStalled`] when the policy stops giving out samples.
pub fn offline(
    board: &BoardModel,
    policy: &mut impl Policy,
    samples: usize,
    seed: u64,
) -> Result<f64, PolicyStalled> {
    Ok(offline_run(board, policy, samples, seed)?.seconds)
}

/// Simulates an Offline query as [`offline`] does, and also returns its jitter.
///
/// # Errors
/// [`PolicyStalled`] when the policy stops giving out samples.
pub fn offline_run(
    board: &BoardModel,
    policy: &mut impl Policy,
    samples: usize,
    seed: u64,
) -> Result<SimulatedQuery, PolicyStalled> {
    let mut run = Simulation::new(board, seed);
    run.until(policy, samples, |_, remaining| remaining == 0)?;
    Ok(SimulatedQuery {
        seconds: run.now,
        stretched: run.chip.stretched().collect(),
    })
}

/// Simulates `queries` queries one after the other, each split into `split[unit]` samples per unit, in batches of at most
/// the unit's largest. Returns the seconds of each query.
///
/// # Errors
/// [`PolicyStalled`] when the split is all zeros.
pub fn one_by_one(
    board: &BoardModel,
    split: &[usize],
    queries: usize,
    seed: u64,
) -> Result<Vec<f64>, PolicyStalled> {
    let mut run = Simulation::new(board, seed);
    let samples = split.iter().sum();
    let most = board.units.iter().map(|unit| unit.times.max_batch());
    let mut policy = FixedPortions::new(split.to_vec(), most.collect());
    let mut latencies = Vec::with_capacity(queries);
    for _ in 0..queries {
        let begin = run.now;
        run.until(&mut policy, samples, |_, remaining| remaining == 0)?;
        latencies.push(run.now - begin);
    }
    Ok(latencies)
}

/// Simulates units that compute batches of constant `sizes` without pause; units with size 0 are idle. Returns the seconds
/// between two batches of each unit, over `batches` batches after the first. All streams are busy when `pipelined`, else
/// one.
#[must_use]
pub fn steady(board: &BoardModel, sizes: &[usize], pipelined: bool, batches: usize, seed: u64) -> Vec<f64> {
    let mut single = board.clone();
    if !pipelined {
        single.units.iter_mut().for_each(|unit| unit.streams = 1);
    }
    let mut run = Simulation::new(&single, seed);
    let mut pace = ConstantBatches {
        sizes: sizes.to_vec(),
        marks: vec![(0, 0.0, 0.0); sizes.len()],
    };
    // The samples never run out, so that this cannot stall unless all sizes are 0, when there is nothing to measure.
    let enough = |pace: &ConstantBatches, _| {
        let counts = pace.marks.iter().zip(&pace.sizes);
        counts
            .filter(|&(_, &size)| size > 0)
            .all(|((done, ..), _)| *done > batches)
    };
    let _ = run.until(&mut pace, usize::MAX, enough);
    let seconds = pace.marks.iter().map(|&(done, first, last)| match done {
        0 | 1 => f64::INFINITY,
        _ => (last - first) / (done - 1) as f64,
    });
    seconds.collect()
}

/// A policy that keeps units busy with batches of constant size, and records when they are done.
struct ConstantBatches {
    sizes: Vec<usize>,
    /// The number of finished batches, and the times of the first and the last.
    marks: Vec<(usize, f64, f64)>,
}

impl Policy for ConstantBatches {
    fn take(&mut self, unit: usize, _: f64, _: usize) -> usize {
        self.sizes[unit]
    }

    fn done(&mut self, unit: usize, now: f64) {
        let (done, first, last) = &mut self.marks[unit];
        *done += 1;
        *last = now;
        if *done == 1 {
            *first = now;
        }
    }
}

/// A running simulation.
struct Simulation {
    chip: BoardSimulator,
    free_streams: Vec<usize>,
    now: f64,
}

impl Simulation {
    fn new(board: &BoardModel, seed: u64) -> Self {
        Self {
            free_streams: board.units.iter().map(|unit| unit.streams).collect(),
            chip: BoardSimulator::new(board.clone(), seed),
            now: 0.0,
        }
    }

    /// Runs until `enough` returns true, or until no sample is left and all batches are done.
    fn until<P: Policy>(
        &mut self,
        policy: &mut P,
        mut remaining: usize,
        enough: impl Fn(&P, usize) -> bool,
    ) -> Result<(), PolicyStalled> {
        loop {
            self.offer(policy, &mut remaining);
            let Some(event) = self.chip.step() else {
                return if remaining == 0 {
                    Ok(())
                } else {
                    Err(PolicyStalled(remaining))
                };
            };
            self.now = self.now.max(event.at);
            if let Some(unit) = event.done {
                self.free_streams[unit] += 1;
                policy.done(unit, self.now);
                if remaining > 0 && enough(policy, remaining) {
                    return Ok(());
                }
            }
        }
    }

    /// Offers the remaining samples to every free stream.
    fn offer(&mut self, policy: &mut impl Policy, remaining: &mut usize) {
        for unit in 0..self.free_streams.len() {
            while self.free_streams[unit] > 0 && *remaining > 0 {
                let size = policy.take(unit, self.now, *remaining).min(*remaining);
                if size == 0 {
                    break;
                }
                *remaining -= size;
                self.free_streams[unit] -= 1;
                self.chip.submit(unit, size, self.now);
            }
        }
    }
}
