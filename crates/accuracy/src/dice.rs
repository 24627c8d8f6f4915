//! DICE of segmentations, as the reference's `accuracy_kits.py` computes it: for each class but the first the overlap of response and
//! truth, and their mean over the cases. The log is read entry by entry; one case is in memory.

use std::{fmt, path::Path};

use regatta_mllog::read::{AccuracyEntry, AccuracyLogError};
use regatta_types::accuracy_line::dice_line;

use regatta_datasets::{
    label_files::segmentation_path,
    volumes::{NiftiFile, VolumeError, VolumeFault},
};

/// What the reference adds to both sides of the fraction, so that a class without a voxel has the score 1.
const SMOOTH: f64 = 1e-6;

/// The DICE of a run. Its `Display` is the official script's line.
#[derive(Debug, Clone, PartialEq)]
pub struct DiceScore {
    /// The mean of the cases' means, as a fraction.
    pub mean: f64,
    /// The means of each class but the first: kidney and tumour.
    pub classes: Vec<f64>,
    /// The number of cases with a response.
    pub cases: usize,
    /// The number of further responses to the same samples, which are ignored.
    pub duplicates: usize,
    /// The indices of the samples without a response, ascending.
    pub missing: Vec<usize>,
}

impl fmt::Display for DiceScore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&dice_line(self.mean, &self.classes))
    }
}

/// The error when no DICE can be computed. Entries count from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiceError {
    /// The log cannot be read.
    #[error("the accuracy log cannot be read")]
    Log(#[from] AccuracyLogError),
    /// The log has no entry.
    #[error("the accuracy log has no entry; hint: run in AccuracyOnly or SubmissionRun mode")]
    NoEntry,
    /// An entry names a sample that the dataset does not have.
    #[error(
        "entry {entry} is for sample {index}, but there are {samples} samples; hint: use the map of this dataset"
    )]
    UnknownSample {
        /// The entry's number.
        entry: usize,
        /// The sample in the entry.
        index: u64,
        samples: usize,
    },
    /// A segmentation beside the samples cannot be read.
    #[error("the segmentation of sample {index} cannot be read (has its dataset been prepared?)")]
    Truth {
        /// The sample.
        index: u64,
        /// The cause.
        #[source]
        source: Box<VolumeError>,
    },
    /// A response has another number of voxels than its sample.
    #[error(
        "the response in entry {entry} (sample {index}) has {found} bytes, but the sample has {expected} voxels; hint: the response is one byte for each voxel"
    )]
    Size {
        /// The entry's number.
        entry: usize,
        /// The sample in the entry.
        index: u64,
        /// The bytes of the response.
        found: usize,
        /// The voxels of the sample.
        expected: usize,
    },
    /// A response has a class that the model does not have.
    #[error(
        "the response in entry {entry} (sample {index}) has the class {class}, but there are {classes}, from 0"
    )]
    Class {
        /// The entry's number.
        entry: usize,
        /// The sample in the entry.
        index: u64,
        class: u8,
        classes: usize,
    },
}

/// Computes the DICE of `entries` with the segmentations of the cases `names` in `directory`.
pub(crate) fn dice(
    entries: impl IntoIterator<Item = Result<AccuracyEntry, AccuracyLogError>>,
    names: &[String],
    directory: &Path,
    classes: usize,
) -> Result<DiceScore, DiceError> {
    let mut scores: Vec<Option<Vec<f64>>> = vec![None; names.len()];
    let mut duplicates = 0;
    for (number, entry) in entries.into_iter().enumerate() {
        let (entry, number) = (entry?, number + 1);
        let index = entry.qsl_idx;
        let position = usize::try_from(index).unwrap_or(usize::MAX);
        let Some((score, name)) = scores.get_mut(position).zip(names.get(position)) else {
            return Err(DiceError::UnknownSample {
                entry: number,
                index,
                samples: names.len(),
            });
        };
        if score.is_some() {
            duplicates += 1;
            continue;
        }
        let truth = truth(&segmentation_path(directory, name), classes);
        let truth = truth.map_err(|source| DiceError::Truth {
            index,
            source: Box::new(source),
        })?;
        *score = Some(of_case(&truth, &entry.data, classes, number, index)?);
    }
    let found: Vec<&Vec<f64>> = scores.iter().flatten().collect();
    if found.is_empty() {
        return Err(DiceError::NoEntry);
    }
    let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / found.len() as f64;
    let counted = classes.saturating_sub(1);
    Ok(DiceScore {
        mean: mean(
            &mut found
                .iter()
                .map(|score| score.iter().sum::<f64>() / counted as f64),
        ),
        classes: (0..counted)
            .map(|class| mean(&mut found.iter().map(|score| score[class])))
            .collect(),
        cases: found.len(),
        duplicates,
        missing: (0..names.len())
            .filter(|&index| scores[index].is_none())
            .collect(),
    })
}

/// Reads the classes of a case, with the last dimension fastest, as in responses.
fn truth(path: &Path, classes: usize) -> Result<Vec<u8>, VolumeError> {
    NiftiFile::open(path)?.voxels(path, |value| {
        let class = value as u8;
        if usize::from(class) < classes && f64::from(class) == value {
            Ok(class)
        } else {
            Err(VolumeFault::Class {
                class: value,
                classes,
            })
        }
    })
}

/// Returns the score of each class but the first.
fn of_case(
    truth: &[u8],
    response: &[u8],
    classes: usize,
    entry: usize,
    index: u64,
) -> Result<Vec<f64>, DiceError> {
    if truth.len() != response.len() {
        return Err(DiceError::Size {
            entry,
            index,
            found: response.len(),
            expected: truth.len(),
        });
    }
    let (mut common, mut sums) = (vec![0_u64; classes], vec![0_u64; classes]);
    for (&own, &found) in truth.iter().zip(response) {
        let Some(sum) = sums.get_mut(usize::from(found)) else {
            return Err(DiceError::Class {
                entry,
                index,
                class: found,
                classes,
            });
        };
        *sum += 1;
        sums[usize::from(own)] += 1;
        common[usize::from(own)] += u64::from(own == found);
    }
    let score = |class: usize| (2.0 * common[class] as f64 + SMOOTH) / (sums[class] as f64 + SMOOTH);
    Ok((1..classes).map(score).collect())
}
