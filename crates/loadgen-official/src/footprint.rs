//! Memory that the official LoadGen needs for a series, which it generates completely in advance. The value is an upper estimate.

use regatta_loadgen::check::SeriesSize;

/// Bytes of a generated query and of its record in the log. Measured on 6.0.17, x86-64: 436 for a Server query of one sample.
const PER_QUERY: u64 = 300;
/// Bytes of a generated sample and of its latency. Measured likewise: 148 for an Offline sample, 102 for one of MultiStream.
const PER_SAMPLE: u64 = 150;
/// Bytes of a loaded sample's index, in the sets and in shuffled orders.
const PER_LOADED: u64 = 32;

pub(crate) fn bytes(size: &SeriesSize) -> u64 {
    [
        size.queries.saturating_mul(PER_QUERY),
        size.samples().saturating_mul(PER_SAMPLE),
        // LoadGen reserves memory for a set of the requested size.
        size.loaded.max(size.set_size).saturating_mul(PER_LOADED),
    ]
    .into_iter()
    .fold(0, u64::saturating_add)
}
