//! Further responses to samples that have one already. LoadGen's MultiStream causes some: it fills the last query of each loadable set with samples
//! of the same set.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use regatta_mllog::read::{AccuracyEntry, AccuracyLogError};
use regatta_types::benchmark::Dataset;

/// The samples of a query of MultiStream (`inference_rules.adoc`, "Scenarios").
const SAMPLES_PER_QUERY: usize = 8;

/// Counts the responses that differ from the first response to the same sample.
///
/// # Errors
/// The first error of the log.
pub(crate) fn count_different(
    entries: impl IntoIterator<Item = Result<AccuracyEntry, AccuracyLogError>>,
) -> Result<usize, AccuracyLogError> {
    // Hashes, because responses may be volumes.
    let (mut first, mut different) = (BTreeMap::new(), 0);
    for entry in entries {
        let entry = entry?;
        let mut hasher = DefaultHasher::new();
        entry.data.hash(&mut hasher);
        let hash = hasher.finish();
        match first.entry(entry.qsl_idx) {
            Entry::Vacant(place) => {
                place.insert(hash);
            }
            Entry::Occupied(known) => different += usize::from(*known.get() != hash),
        }
    }
    Ok(different)
}

/// Returns whether `repeated` further responses to `answered` samples are as many as MultiStream needs to fill its queries.
pub(crate) const fn is_padding(dataset: &Dataset, answered: usize, repeated: usize) -> bool {
    let in_memory = match dataset.performance_samples {
        0 => dataset.total_samples,
        samples => samples,
    };
    let sets = match in_memory {
        0 => 1,
        samples => dataset.total_samples.div_ceil(samples),
    };
    let is_full = answered
        .saturating_add(repeated)
        .is_multiple_of(SAMPLES_PER_QUERY);
    is_full && repeated < sets.saturating_mul(SAMPLES_PER_QUERY)
}

#[cfg(test)]
mod tests {
    use regatta_types::benchmark::Benchmark;

    use super::*;

    #[test]
    fn only_different_responses_to_one_sample_are_counted() {
        let entry = |index: u64, data: &[u8]| {
            Ok(AccuracyEntry {
                seq_id: 0,
                qsl_idx: index,
                data: data.to_vec(),
                token_data: None,
                token_count: None,
            })
        };
        let equal = [entry(0, b"a"), entry(1, b"b"), entry(0, b"a")];
        assert_eq!(count_different(equal).unwrap(), 0);
        let different = [entry(0, b"a"), entry(0, b"b"), entry(0, b"a"), entry(0, b"c")];
        assert_eq!(count_different(different).unwrap(), 2);
    }

    #[test]
    fn multi_stream_fills_the_last_query_of_each_loadable_set() {
        let text = include_str!("../../../configs/benchmarks/digits.toml");
        let mut dataset = Benchmark::from_toml(text).unwrap().dataset;
        dataset.performance_samples = 597;
        let of_597 = |answered, repeated| is_padding(&dataset, answered, repeated);
        assert!(of_597(597, 3));
        assert!(!of_597(597, 2) && !of_597(597, 11) && !of_597(596, 3));
        // Three sets: the queries of each one are filled, with less than a query.
        dataset.performance_samples = 250;
        assert!(is_padding(&dataset, 597, 19) && !is_padding(&dataset, 597, 27));
    }
}
