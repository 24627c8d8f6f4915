//! How good a policy is on a modelled board: its distance to the bound, and LWIS's policy beside it on the same jitter.

use crate::{
    board::Board,
    bound,
    learn::{Learnt, VirtualStand, learn},
    policy::FirstFree,
    virtual_time::{self, Done, Stalled},
};

/// Samples of an Offline query: LoadGen's least (`min_query_count` of Offline is 24,576 in every round).
pub const OFFLINE_SAMPLES: usize = 24_576;
/// Samples of a MultiStream query.
pub const MULTI_STREAM_SAMPLES: usize = 8;
/// MultiStream queries per judgement: enough for the 99th percentile that the rules ask for.
const QUERIES: usize = 1_000;
/// Batches per unit and measurement of the warm-up.
const WARM_UP: usize = 8;

/// Ours and LWIS's on one board.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judgement {
    /// Ours.
    pub ours: Reached,
    /// LWIS's policy with the published batch sizes.
    pub lwis: Reached,
    /// How many times more ours does in the same time; below 1 it is worse.
    pub gain: f64,
}

/// What a policy reached.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Reached {
    /// Offline: samples per second. MultiStream: the 99th percentile of a query's seconds.
    pub value: f64,
    /// Which share that is of what none can beat under the same jitter: 1 at most.
    pub of_bound: f64,
}

/// Offline: samples per second of `queries` of `samples` each, the jitter of each from a seed of its own, counted on from
/// `seed`. Both policies meet the same jitter.
///
/// # Errors
/// [`Stalled`], which would be a fault of a policy.
pub fn offline(board: &Board, samples: usize, seed: u64, queries: u64) -> Result<Judgement, Stalled> {
    let batches: Vec<usize> = board.units.iter().map(|unit| unit.batch).collect();
    let (mut ours, mut lwis) = (Vec::new(), Vec::new());
    for seed in (0..queries).map(|query| seed.wrapping_add(query)) {
        let mut policy = learnt(board, true, seed).offline();
        ours.push(virtual_time::offline_run(board, &mut policy, samples, seed)?);
        let mut policy = FirstFree::new(batches.clone());
        lwis.push(virtual_time::offline_run(board, &mut policy, samples, seed)?);
    }
    let reached = |runs: &[Done]| {
        let count = runs.len() as f64;
        let rate = |run: &Done| samples as f64 / run.seconds;
        let share = |run: &Done| rate(run) / bound::best_rate_stretched(board, &run.stretched);
        Reached {
            value: runs.iter().map(rate).sum::<f64>() / count,
            of_bound: runs.iter().map(share).sum::<f64>() / count,
        }
    };
    let (ours, lwis) = (reached(&ours), reached(&lwis));
    Ok(Judgement {
        gain: ours.value / lwis.value,
        ours,
        lwis,
    })
}

/// MultiStream: the 99th percentile of the seconds that a query of 8 takes. LWIS's published configurations give the
/// whole query to the GPU, in batches of at most the published size; the bound is the best of all possible cuts.
///
/// # Errors
/// [`Stalled`], which would be a fault of a policy.
pub fn multi_stream(board: &Board, seed: u64) -> Result<Judgement, Stalled> {
    let p99 = |split: &[usize]| percentile_99(virtual_time::one_by_one(board, split, QUERIES, seed)?);
    let mut gpu_only = vec![0; board.units.len()];
    gpu_only[0] = MULTI_STREAM_SAMPLES;
    let lwis = p99(&gpu_only)?;
    let ours = p99(&learnt(board, false, seed).split(MULTI_STREAM_SAMPLES).portions)?;
    let mut bound = lwis.min(ours);
    for split in splits(board.units.len(), MULTI_STREAM_SAMPLES) {
        bound = bound.min(p99(&split)?);
    }
    let reached = |p99: f64| Reached {
        value: p99,
        of_bound: bound / p99,
    };
    Ok(Judgement {
        ours: reached(ours),
        lwis: reached(lwis),
        gain: lwis / ours,
    })
}

fn learnt(board: &Board, pipelined: bool, seed: u64) -> Learnt {
    let most = board.units.iter().map(|unit| {
        if pipelined {
            unit.batch
        } else {
            unit.times.max_batch().min(MULTI_STREAM_SAMPLES)
        }
    });
    let mut stand = VirtualStand {
        board,
        most: most.collect(),
        batches: WARM_UP,
        // The warm-up's jitter is not the run's.
        seed: seed ^ 0x5eed_0000_0000,
    };
    let Ok(learnt) = learn(&mut stand, pipelined);
    learnt
}

fn percentile_99(mut latencies: Vec<f64>) -> Result<f64, Stalled> {
    latencies.sort_by(f64::total_cmp);
    Ok(latencies[latencies.len() * 99 / 100])
}

/// All ways to share `samples` among `units`.
fn splits(units: usize, samples: usize) -> Vec<Vec<usize>> {
    if units == 1 {
        return vec![vec![samples]];
    }
    let with_first = |first: usize| {
        splits(units - 1, samples - first)
            .into_iter()
            .map(move |mut rest| {
                rest.insert(0, first);
                rest
            })
    };
    (0..=samples).flat_map(with_first).collect()
}
