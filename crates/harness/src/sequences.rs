//! The tokens of each sample, read from its mask when the dataset is opened, and the order in which an Offline query's samples are computed.
//!
//! MLPerf's inference rules allow "sorting samples in a query when it improves performance even when all samples are distinct" and choosing
//! an implementation by "dynamically determined batch size or input size". They forbid sorting beyond a query for large language models.

use regatta_engines::SequenceBuckets;
use regatta_loadgen::sut::{Query, QuerySample};
use regatta_types::benchmark::{Benchmark, Dtype, Response};
use regatta_types::engine_settings::SequenceLengths;

use super::{array_set::ArraySet, npy::SampleError};

/// Why samples cannot be computed at the requested lengths.
#[derive(Debug, thiserror::Error)]
pub enum SequenceError {
    /// The lengths do not suit the benchmark.
    #[error("sequence_lengths is {lengths}, which {benchmark} cannot have: {reason}")]
    Unsuitable {
        benchmark: String,
        /// The requested lengths.
        lengths: SequenceLengths,
        /// Why not.
        reason: String,
    },
    /// The samples' masks cannot be read.
    #[error("the dataset of {benchmark} cannot be used")]
    Masks {
        benchmark: String,
        /// The cause, which names the file.
        #[source]
        source: SampleError,
    },
}

/// Returns the lengths at which samples are computed, and each sample's. Without `requested`, all samples take the full length.
///
/// # Errors
/// [`SequenceError`] when the benchmark has no sequences, a length is above the full one, or the samples' masks cannot be read.
pub(super) fn read_buckets(
    benchmark: &Benchmark,
    requested: Option<&SequenceLengths>,
    arrays: Option<&ArraySet>,
) -> Result<SequenceBuckets, SequenceError> {
    let Some(requested) = requested else {
        return Ok(SequenceBuckets::default());
    };
    let model = &benchmark.model;
    let unsuitable = |reason: String| SequenceError::Unsuitable {
        benchmark: benchmark.name.clone(),
        lengths: requested.clone(),
        reason,
    };
    let full = model
        .sequence_length()
        .filter(|_| model.response == Response::Stacked);
    let (Some(full), Some(mask), Some(arrays)) = (full, &model.mask_input, arrays) else {
        let reason = "its samples are not sequences: its file has no one-dimensional mask_input, or has a response other than `stacked`";
        return Err(unsuitable(reason.to_owned()));
    };
    let mut lengths = requested.tokens().to_vec();
    if let Some(longer) = lengths.iter().find(|&&length| length > full) {
        return Err(unsuitable(format!("{longer} is above the full length of {full}")));
    }
    if lengths.last() != Some(&full) {
        lengths.push(full);
    }
    let input = model.inputs().find(|input| input.name == Some(mask));
    let size = input.map_or(Dtype::Int32, |input| input.dtype).size();
    let tokens = arrays.map_rows(mask, |row| tokens(row, size));
    let tokens = tokens.map_err(|source| SequenceError::Masks {
        benchmark: benchmark.name.clone(),
        source,
    })?;
    Ok(SequenceBuckets::new(lengths, tokens.into_iter()))
}

/// Returns the tokens before the padding of a mask, whose elements have `size` bytes.
fn tokens(mask: &[u8], size: usize) -> usize {
    let last = mask.iter().rposition(|&byte| byte != 0);
    last.map_or(0, |byte| byte / size + 1)
}

/// Returns a query's samples in the order of their lengths, the longest first, so that the last batches are short ones. Samples of one length
/// keep their order. Needs no memory: each length takes another pass over the query.
pub(super) fn longest_first<'a>(
    query: Query<'a>,
    buckets: &'a SequenceBuckets,
) -> impl Iterator<Item = QuerySample> + 'a {
    (0..buckets.count()).rev().flat_map(move |bucket| {
        query
            .iter()
            .filter(move |sample| buckets.of(sample.index) == bucket)
    })
}

#[cfg(test)]
mod tests {
    use regatta_loadgen::sut::ResponseId;

    use super::*;

    #[test]
    fn a_querys_samples_come_by_length_and_every_one_once() {
        let buckets = SequenceBuckets::new(vec![2, 8], [5, 1, 7, 2, 8].into_iter());
        let samples: Vec<_> = [0, 1, 2, 3, 4, 1]
            .iter()
            .enumerate()
            .map(|(number, &index)| QuerySample {
                id: ResponseId(number as u64),
                index,
            })
            .collect();
        let sorted = longest_first(Query::Slice(&samples), &buckets).map(|sample| sample.id.0);
        assert_eq!(sorted.collect::<Vec<_>>(), [0, 2, 4, 1, 3, 5]);
    }

    #[test]
    fn tokens_end_with_the_masks_last_one() {
        let mask = [1_i32, 1, 0, 1, 0, 0].map(i32::to_le_bytes).concat();
        assert_eq!((tokens(&mask, 4), tokens(&[0; 8], 4)), (4, 0));
    }
}
