//! Top-1 accuracy of a classification run, as the official `accuracy-imagenet.py` reckons it.
//!
//! Each sample counts once, with its first answer; samples without an answer do not count. The official script says
//! nothing of the latter, so they are listed here.

use std::fmt;

use regatta_mllog::read::{AccuracyEntry, AccuracyLogError};

use super::label::{LabelFault, LabelType};
use crate::val_map::ValMap;

/// The outcome. Its `Display` is the official script's line, which submission checkers look for in `accuracy.txt`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Top1 {
    /// Samples answered rightly.
    pub good: usize,
    /// Samples answered.
    pub total: usize,
    /// Further answers to samples that had one, which are passed over.
    pub duplicates: usize,
    /// Indices of the samples without an answer, ascending.
    pub missing: Vec<usize>,
}

impl Top1 {
    /// The accuracy in percent.
    #[must_use]
    pub fn percent(&self) -> f64 {
        100.0 * self.good as f64 / self.total as f64
    }
}

impl fmt::Display for Top1 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "accuracy={:.3}%, good={}, total={}",
            self.percent(),
            self.good,
            self.total
        )
    }
}

/// An accuracy that cannot be reckoned. Entries count from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AccuracyError {
    /// The log does not read.
    #[error("the answers cannot be read")]
    Log(#[from] AccuracyLogError),
    /// The log has no entry.
    #[error("the accuracy log has no entry: was the run one of AccuracyOnly or SubmissionRun?")]
    NoEntry,
    /// An entry for a sample that the dataset does not have.
    #[error(
        "entry {entry} answers sample {index}, but the map ends with sample {last}: is it the map of this dataset?"
    )]
    UnknownSample {
        /// Which entry.
        entry: usize,
        /// The sample it names.
        index: u64,
        /// The last sample of the map.
        last: usize,
    },
    /// The map has no sample.
    #[error("the map has no sample")]
    EmptyMap,
    /// An entry whose response holds no label.
    #[error("entry {entry} (sample {index}) holds no label: is the response type right?")]
    Label {
        /// Which entry.
        entry: usize,
        /// The sample it answers.
        index: u64,
        /// What is wrong.
        #[source]
        source: LabelFault,
    },
}

/// Reckons the accuracy of `entries` against the labels of `map`.
///
/// # Errors
/// See [`AccuracyError`]; the first fault in the log ends the reckoning.
pub fn top1(
    entries: impl IntoIterator<Item = Result<AccuracyEntry, AccuracyLogError>>,
    map: &ValMap,
    label_type: LabelType,
) -> Result<Top1, AccuracyError> {
    let last = map.len().checked_sub(1).ok_or(AccuracyError::EmptyMap)?;
    let mut answered = vec![false; map.len()];
    let mut outcome = Top1 {
        good: 0,
        total: 0,
        duplicates: 0,
        missing: Vec::new(),
    };
    for (number, entry) in entries.into_iter().enumerate() {
        let (entry, number) = (entry?, number + 1);
        let index = entry.qsl_idx;
        let unknown = || AccuracyError::UnknownSample {
            entry: number,
            index,
            last,
        };
        let place = usize::try_from(index).map_err(|_| unknown())?;
        let (Some(seen), Some(label)) = (answered.get_mut(place), map.label(place)) else {
            return Err(unknown());
        };
        if *seen {
            outcome.duplicates += 1;
            continue;
        }
        *seen = true;
        let found = label_type
            .read(&entry.data)
            .map_err(|source| AccuracyError::Label {
                entry: number,
                index,
                source,
            })?;
        outcome.total += 1;
        outcome.good += usize::from(found == label);
    }
    if outcome.total == 0 {
        return Err(AccuracyError::NoEntry);
    }
    outcome.missing = answered
        .iter()
        .enumerate()
        .filter(|(_, seen)| !**seen)
        .map(|(index, _)| index)
        .collect();
    Ok(outcome)
}
