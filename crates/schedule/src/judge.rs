//! How good a policy is on a modelled board: its distance to the bound, and LWIS's policy beside it on the same jitter.

use crate::{
    board::Board,
    bound,
    learn::{Learnt, VirtualStand, learn},
    policy::FirstFree,
    virtual_time::{self, Stalled},
};

/// Samples of an Offline query: LoadGen's least (`min_query_count` of Offline is 24,576 in every round).
pub const OFFLINE_SAMPLES: usize = 24_576;
/// Samples of a MultiStream query.
pub const MULTI_STREAM_SAMPLES: usize = 8;
/// MultiStream queries per judgement: enough for the 99th percentile that the rules ask for.
const QUERIES: usize = 1_000;
/// Batches per unit and measurement of the warm-up.
const WARM_UP: usize = 8;

/// Ours, LWIS's and the bound on one board.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judgement {
    /// Ours.
    pub ours: f64,
    /// LWIS's policy with the published batch sizes.
    pub lwis: f64,
    /// What none can beat.
    pub bound: f64,
}

/// Offline: samples per second of a query of `samples`.
///
/// # Errors
/// [`Stalled`], which would be a fault of a policy.
pub fn offline(board: &Board, samples: usize, seed: u64) -> Result<Judgement, Stalled> {
    let batches = board.units.iter().map(|unit| unit.batch).collect();
    let rate = |seconds: f64| samples as f64 / seconds;
    Ok(Judgement {
        ours: rate(virtual_time::offline(
            board,
            &mut learnt(board, true, seed).offline(),
            samples,
            seed,
        )?),
        lwis: rate(virtual_time::offline(
            board,
            &mut FirstFree::new(batches),
            samples,
            seed,
        )?),
        bound: bound::best_rate(board),
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
    Ok(Judgement { ours, lwis, bound })
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
