//! Top-1 accuracy of a classification run, computed as the official `accuracy-imagenet.py` does.
//!
//! Each sample counts once, with its first response. Samples without a response do not count; the official script does not
//! mention them, and [`Top1::missing`] lists them.

use std::fmt;

use regatta_mllog::read::{AccuracyEntry, AccuracyLogError};
use regatta_types::accuracy_line::top1_line;

use super::label::{LabelError, LabelType};
use regatta_datasets::val_map::ValMap;

/// The top-1 accuracy of a run. Its `Display` is the official script's line, which submission checkers search in
/// `accuracy.txt`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Top1 {
    /// The number of samples with a correct response.
    pub good: usize,
    /// The number of samples with a response.
    pub total: usize,
    /// The number of further responses to the same samples, which are ignored.
    pub duplicates: usize,
    /// The indices of the samples without a response, ascending.
    pub missing: Vec<usize>,
}

impl Top1 {
    /// Returns the accuracy in percent.
    #[must_use]
    pub fn percent(&self) -> f64 {
        100.0 * self.good as f64 / self.total as f64
    }
}

impl fmt::Display for Top1 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&top1_line(self.percent(), self.good, self.total))
    }
}

/// The error when a top-1 accuracy cannot be computed. Entries count from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Top1Error {
    /// The log cannot be read.
    #[error("the accuracy log cannot be read")]
    Log(#[from] AccuracyLogError),
    /// The log has no entry.
    #[error("the accuracy log has no entry; hint: run in AccuracyOnly or SubmissionRun mode")]
    NoEntry,
    /// An entry names a sample that the dataset does not have.
    #[error(
        "entry {entry} is for sample {index}, but the map ends with sample {last}; hint: use the map of this dataset"
    )]
    UnknownSample {
        /// The entry's number.
        entry: usize,
        /// The sample in the entry.
        index: u64,
        /// The last sample of the map.
        last: usize,
    },
    /// The map has no sample.
    #[error("the map has no sample")]
    EmptyMap,
    /// The response of an entry contains no label.
    #[error("the response in entry {entry} (sample {index}) is not a label (is the response type right?)")]
    Label {
        /// The entry's number.
        entry: usize,
        /// The sample in the entry.
        index: u64,
        /// The cause.
        #[source]
        source: LabelError,
    },
}

/// Computes the accuracy of `entries` with the labels of `map`.
///
/// # Errors
/// [`Top1Error`] for the first invalid entry of the log.
pub fn top1(
    entries: impl IntoIterator<Item = Result<AccuracyEntry, AccuracyLogError>>,
    map: &ValMap,
    label_type: LabelType,
) -> Result<Top1, Top1Error> {
    let last = map.len().checked_sub(1).ok_or(Top1Error::EmptyMap)?;
    let mut has_response = vec![false; map.len()];
    let mut top1 = Top1 {
        good: 0,
        total: 0,
        duplicates: 0,
        missing: Vec::new(),
    };
    for (number, entry) in entries.into_iter().enumerate() {
        let (entry, number) = (entry?, number + 1);
        let index = entry.qsl_idx;
        let unknown = || Top1Error::UnknownSample {
            entry: number,
            index,
            last,
        };
        let position = usize::try_from(index).map_err(|_| unknown())?;
        let (Some(seen), Some(label)) = (has_response.get_mut(position), map.label(position)) else {
            return Err(unknown());
        };
        if *seen {
            top1.duplicates += 1;
            continue;
        }
        *seen = true;
        let found = label_type.read(&entry.data).map_err(|source| Top1Error::Label {
            entry: number,
            index,
            source,
        })?;
        top1.total += 1;
        top1.good += usize::from(found == label);
    }
    if top1.total == 0 {
        return Err(Top1Error::NoEntry);
    }
    top1.missing = has_response
        .iter()
        .enumerate()
        .filter(|(_, seen)| !**seen)
        .map(|(index, _)| index)
        .collect();
    Ok(top1)
}
