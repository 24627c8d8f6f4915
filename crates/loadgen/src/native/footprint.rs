//! Upper estimate of the memory for a series: the data per sample, times the largest number of samples.

use std::mem::size_of;

use regatta_mllog::trace::SampleTrace;
use regatta_types::Scenario;

use super::{open_sink, stream_sink, tokens};
use crate::{
    check::{SeriesCheck, SeriesSize},
    request::RunRequest,
    results::LatencyRecorder,
    sut::QuerySample,
};

/// Bytes of a loaded sample's index, its position in a shuffled order, and the copy of both while sets are split.
const PER_LOADED: u64 = 2 * (size_of::<usize>() + size_of::<u32>()) as u64;

pub(super) fn without_trace(size: &SeriesSize) -> u64 {
    let samples = size.samples();
    let kept = match size.scenario {
        Scenario::SingleStream | Scenario::MultiStream => kept_of_streams(size),
        Scenario::Server => samples.saturating_mul(open_sink::PER_SAMPLE),
        // Shuffled indices may be kept in addition.
        Scenario::Offline => samples.saturating_mul(open_sink::PER_SAMPLE + size_of::<u32>() as u64),
    };
    let logged = match size.scenario {
        Scenario::Server | Scenario::Offline if size.logs => samples.saturating_mul(open_sink::PER_LOGGED),
        _ => 0,
    };
    let tokens = if size.tokens {
        issued(size).saturating_mul(tokens::PER_SAMPLE)
    } else {
        0
    };
    [kept, logged, tokens, size.loaded.saturating_mul(PER_LOADED)]
        .into_iter()
        .fold(0, u64::saturating_add)
}

pub(super) fn with_trace(size: &SeriesSize) -> u64 {
    let per_sample = open_sink::PER_TRACED + size_of::<SampleTrace>() as u64;
    let also_logged = SeriesSize { logs: true, ..*size };
    without_trace(&also_logged).saturating_add(issued(size).saturating_mul(per_sample))
}

fn issued(size: &SeriesSize) -> u64 {
    match size.scenario {
        Scenario::SingleStream | Scenario::MultiStream => issued_by_streams(size),
        Scenario::Server | Scenario::Offline => size.samples(),
    }
}

/// Returns the bytes of the outstanding query, and of the latencies of completed ones.
fn kept_of_streams(size: &SeriesSize) -> u64 {
    let outstanding = (stream_sink::PER_SAMPLE + size_of::<QuerySample>() + size_of::<bool>()) as u64;
    let latencies = match size.scenario {
        // A query's latency is kept in addition to those of its samples.
        Scenario::MultiStream => 2 * LatencyRecorder::BYTES,
        _ => LatencyRecorder::BYTES,
    };
    let outstanding = size.samples_per_query.saturating_mul(outstanding);
    issued_by_streams(size)
        .saturating_mul(latencies)
        .saturating_add(outstanding)
}

/// Returns the number of samples with listed latencies. Short latencies are counted, and the duration limits the number of long ones.
fn issued_by_streams(size: &SeriesSize) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an estimate; larger values are limited to the maximum"
    )]
    let in_time = (size.seconds / LatencyRecorder::MIN_LISTED_S) as u64;
    let queries = size.queries.min(size.least_queries.max(in_time));
    queries.saturating_mul(size.samples_per_query)
}

/// Returns the check that a request's series of queries fits into memory.
pub(super) fn series_check(request: &RunRequest) -> SeriesCheck {
    let bytes = if request.logs.trace {
        with_trace
    } else {
        without_trace
    };
    SeriesCheck::new(request.rng_abi, bytes)
}
