//! The comparison of Regatta's policy with LWIS's on a board model: both with the same jitter, and each relative to the
//! bound that no policy exceeds.

use crate::{
    board_model::BoardModel,
    policy::FirstFree,
    throughput_bound,
    unit_profiler::{SimulatedProfiler, UnitProfiles, profile_units},
    virtual_time::{self, PolicyStalled, SimulatedQuery},
};

/// The samples of an Offline query: LoadGen's minimum (`min_query_count` of Offline is 24,576 in every round).
pub const OFFLINE_SAMPLES: usize = 24_576;
/// The samples of a MultiStream query.
pub const MULTI_STREAM_SAMPLES: usize = 8;
/// The MultiStream queries per comparison: enough for the 99th percentile that the rules require.
const QUERIES: usize = 1_000;
/// The batches per unit in each measurement of the warm-up.
const WARM_UP: usize = 8;

/// The results of both policies on one board.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PolicyComparison {
    /// The result of Regatta's policy.
    pub ours: PolicyResult,
    /// The result of LWIS's policy with the published batch sizes.
    pub lwis: PolicyResult,
    /// The speedup of Regatta's policy over LWIS's; below 1 it is slower.
    pub gain: f64,
}

/// The result of one policy.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PolicyResult {
    /// The samples per second in Offline, or the 99th percentile of the query latency in seconds in MultiStream.
    pub value: f64,
    /// The value relative to the bound with the same jitter: 1 at most.
    pub of_bound: f64,
}

/// Compares the policies in Offline, over `queries` queries of `samples` samples. Each query has its own jitter, from seeds
/// that count up from `seed`; both policies get the same.
///
/// # Errors
/// [`PolicyStalled`], which would be a defect of a policy.
pub fn offline(
    board: &BoardModel,
    samples: usize,
    seed: u64,
    queries: u64,
) -> Result<PolicyComparison, PolicyStalled> {
    let batches: Vec<usize> = board.units.iter().map(|unit| unit.batch).collect();
    let (mut ours, mut lwis) = (Vec::new(), Vec::new());
    for seed in (0..queries).map(|query| seed.wrapping_add(query)) {
        let mut policy = profiles(board, true, seed).offline();
        ours.push(virtual_time::offline_run(board, &mut policy, samples, seed)?);
        let mut policy = FirstFree::new(batches.clone());
        lwis.push(virtual_time::offline_run(board, &mut policy, samples, seed)?);
    }
    let reached = |runs: &[SimulatedQuery]| {
        let count = runs.len() as f64;
        let rate = |run: &SimulatedQuery| samples as f64 / run.seconds;
        let share = |run: &SimulatedQuery| {
            rate(run) / throughput_bound::max_throughput_stretched(board, &run.stretched)
        };
        PolicyResult {
            value: runs.iter().map(rate).sum::<f64>() / count,
            of_bound: runs.iter().map(share).sum::<f64>() / count,
        }
    };
    let (ours, lwis) = (reached(&ours), reached(&lwis));
    Ok(PolicyComparison {
        gain: ours.value / lwis.value,
        ours,
        lwis,
    })
}

/// Compares the policies in MultiStream, by the 99th percentile of the latency of queries of 8 samples. LWIS's published
/// configurations give the complete query to the GPU, in batches of at most the published size. The bound is the best of
/// all possible splits.
///
/// # Errors
/// [`PolicyStalled`], which would be a defect of a policy.
pub fn multi_stream(board: &BoardModel, seed: u64) -> Result<PolicyComparison, PolicyStalled> {
    let p99 = |split: &[usize]| percentile_99(virtual_time::one_by_one(board, split, QUERIES, seed)?);
    let mut gpu_only = vec![0; board.units.len()];
    gpu_only[0] = MULTI_STREAM_SAMPLES;
    let lwis = p99(&gpu_only)?;
    let ours = p99(&profiles(board, false, seed).split(MULTI_STREAM_SAMPLES).portions)?;
    let mut bound = lwis.min(ours);
    for split in splits(board.units.len(), MULTI_STREAM_SAMPLES) {
        bound = bound.min(p99(&split)?);
    }
    let reached = |p99: f64| PolicyResult {
        value: p99,
        of_bound: bound / p99,
    };
    Ok(PolicyComparison {
        ours: reached(ours),
        lwis: reached(lwis),
        gain: lwis / ours,
    })
}

fn profiles(board: &BoardModel, pipelined: bool, seed: u64) -> UnitProfiles {
    let most = board.units.iter().map(|unit| {
        if pipelined {
            unit.batch
        } else {
            unit.times.max_batch().min(MULTI_STREAM_SAMPLES)
        }
    });
    let mut profiler = SimulatedProfiler {
        board,
        most: most.collect(),
        batches: WARM_UP,
        // The warm-up and the run have different jitter.
        seed: seed ^ 0x5eed_0000_0000,
    };
    let Ok(profiles) = profile_units(&mut profiler, pipelined);
    profiles
}

fn percentile_99(mut latencies: Vec<f64>) -> Result<f64, PolicyStalled> {
    latencies.sort_by(f64::total_cmp);
    Ok(latencies[latencies.len() * 99 / 100])
}

/// Returns all splits of `samples` among `units`.
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
