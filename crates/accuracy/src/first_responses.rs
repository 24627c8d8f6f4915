//! Takes the first response of each sample from an accuracy log, as the official scripts for classes do.

use regatta_mllog::read::{AccuracyEntry, AccuracyLogError};

/// What a log has besides the first response of each sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OtherResponses {
    /// The number of samples with a response.
    pub(crate) total: usize,
    /// The number of further responses to the same samples.
    pub(crate) duplicates: usize,
    /// The indices of the samples without a response, ascending.
    pub(crate) missing: Vec<usize>,
}

/// The error for a log without the responses that a metric needs. Entries count from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResponseError {
    /// The log cannot be read.
    #[error("the accuracy log cannot be read")]
    Log(#[from] AccuracyLogError),
    /// The log has no entry.
    #[error("the accuracy log has no entry; hint: run in AccuracyOnly or SubmissionRun mode")]
    NoEntry,
    /// An entry names a sample that the dataset does not have.
    #[error("entry {entry} is for sample {index}, but there are expected values for {samples} samples")]
    UnknownSample {
        /// The entry's number.
        entry: usize,
        /// The sample in the entry.
        index: u64,
        /// The number of samples.
        samples: usize,
    },
    /// The response of an entry is not what the metric reads.
    #[error("the response in entry {entry} (sample {index}) {reason}")]
    Response {
        /// The entry's number.
        entry: usize,
        /// The sample in the entry.
        index: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// The responses and labels together have no value.
    #[error("{0}")]
    Undefined(String),
}

/// Calls `each` with index and first response of each sample.
///
/// # Errors
/// [`ResponseError`] for the first invalid entry, also when `each` returns what is wrong with it.
pub(crate) fn first_responses(
    entries: impl IntoIterator<Item = Result<AccuracyEntry, AccuracyLogError>>,
    samples: usize,
    mut each: impl FnMut(usize, &[u8]) -> Result<(), String>,
) -> Result<OtherResponses, ResponseError> {
    let mut has_response = vec![false; samples];
    let (mut total, mut duplicates) = (0, 0);
    for (number, entry) in entries.into_iter().enumerate() {
        let (entry, number) = (entry?, number + 1);
        let index = entry.qsl_idx;
        let position = usize::try_from(index).unwrap_or(usize::MAX);
        let seen = has_response.get_mut(position);
        let seen = seen.ok_or(ResponseError::UnknownSample {
            entry: number,
            index,
            samples,
        })?;
        if *seen {
            duplicates += 1;
            continue;
        }
        *seen = true;
        total += 1;
        each(position, &entry.data).map_err(|reason| ResponseError::Response {
            entry: number,
            index,
            reason,
        })?;
    }
    if total == 0 {
        return Err(ResponseError::NoEntry);
    }
    let without = has_response.iter().enumerate().filter(|(_, seen)| !**seen);
    Ok(OtherResponses {
        total,
        duplicates,
        missing: without.map(|(index, _)| index).collect(),
    })
}
