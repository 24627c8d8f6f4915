//! A policy on a modelled board in virtual time: hours of samples in milliseconds, repeatable from a seed.
//!
//! What the model of a [`Chip`] leaves out (the host's own time, clocks that change, memory that runs out) is left out here too.

use crate::{
    board::Board,
    chip::Chip,
    policy::{ByPortions, Policy},
};

/// The policy gave nobody anything although all units were idle and samples were left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the policy left {0} samples to nobody")]
pub struct Stalled(pub usize);

/// A query that was computed.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    /// Seconds until its last sample was done.
    pub seconds: f64,
    /// How many times longer than its table says each unit's work took by jitter alone; 1 where it had none.
    pub stretched: Vec<f64>,
}

/// Seconds until all of `samples` are done, which are there from the beginning as in Offline.
///
/// # Errors
/// [`Stalled`].
pub fn offline(board: &Board, policy: &mut impl Policy, samples: usize, seed: u64) -> Result<f64, Stalled> {
    Ok(offline_run(board, policy, samples, seed)?.seconds)
}

/// As [`offline`], with the jitter that the run met.
///
/// # Errors
/// [`Stalled`].
pub fn offline_run(
    board: &Board,
    policy: &mut impl Policy,
    samples: usize,
    seed: u64,
) -> Result<Done, Stalled> {
    let mut run = Run::new(board, seed);
    run.until(policy, samples, |_, remaining| remaining == 0)?;
    Ok(Done {
        seconds: run.now,
        stretched: run.chip.stretched().collect(),
    })
}

/// Seconds that each of `queries` takes, one after the other, each cut into `split[unit]` samples per unit, which are
/// computed in batches of at most the unit's largest.
///
/// # Errors
/// [`Stalled`] when the split is all zeros.
pub fn one_by_one(board: &Board, split: &[usize], queries: usize, seed: u64) -> Result<Vec<f64>, Stalled> {
    let mut run = Run::new(board, seed);
    let samples = split.iter().sum();
    let most = board.units.iter().map(|unit| unit.times.max_batch());
    let mut policy = ByPortions::new(split.to_vec(), most.collect());
    let mut latencies = Vec::with_capacity(queries);
    for _ in 0..queries {
        let begin = run.now;
        run.until(&mut policy, samples, |_, remaining| remaining == 0)?;
        latencies.push(run.now - begin);
    }
    Ok(latencies)
}

/// Seconds between two batches of each unit while the units with a batch size other than 0 work without pause, in
/// flight as many as their streams allow (`pipelined`) or one. Measured over `batches` of each after the first.
#[must_use]
pub fn steady(board: &Board, sizes: &[usize], pipelined: bool, batches: usize, seed: u64) -> Vec<f64> {
    let mut single = board.clone();
    if !pipelined {
        single.units.iter_mut().for_each(|unit| unit.streams = 1);
    }
    let mut run = Run::new(&single, seed);
    let mut pace = Pace {
        sizes: sizes.to_vec(),
        marks: vec![(0, 0.0, 0.0); sizes.len()],
    };
    // Samples without end: stalling is impossible while any size is not 0, and with none there is nothing to measure.
    let enough = |pace: &Pace, _| {
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

/// Keeps units busy with batches of one size and notes when they are done.
struct Pace {
    sizes: Vec<usize>,
    /// Batches done, and when the first and the last were.
    marks: Vec<(usize, f64, f64)>,
}

impl Policy for Pace {
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

/// A board at work.
struct Run {
    chip: Chip,
    free_streams: Vec<usize>,
    now: f64,
}

impl Run {
    fn new(board: &Board, seed: u64) -> Self {
        Self {
            free_streams: board.units.iter().map(|unit| unit.streams).collect(),
            chip: Chip::new(board.clone(), seed),
            now: 0.0,
        }
    }

    /// Works until `enough` says so and, when no sample is left, all batches are done.
    fn until<P: Policy>(
        &mut self,
        policy: &mut P,
        mut remaining: usize,
        enough: impl Fn(&P, usize) -> bool,
    ) -> Result<(), Stalled> {
        loop {
            self.offer(policy, &mut remaining);
            let Some(event) = self.chip.step() else {
                return if remaining == 0 {
                    Ok(())
                } else {
                    Err(Stalled(remaining))
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

    /// Asks for every free stream whether it takes something.
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
