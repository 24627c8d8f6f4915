//! Mean average precision of detections, as the reference's `accuracy-openimages.py` and `accuracy-coco.py` compute it with `pycocotools`. The log is read
//! entry by entry; of each detection only its score and its matches are kept.

mod average;
mod matching;
mod response;

use std::fmt;

use regatta_mllog::read::{AccuracyEntry, AccuracyLogError};
use regatta_types::{accuracy_line::map_line, benchmark::DetectionClasses};

pub use self::response::DetectionsError;
use self::{average::STATS, matching::Evaluation};
use regatta_datasets::annotations::Annotations;

/// The mean average precision of a run. Its `Display` is the official script's line.
#[derive(Debug, Clone, PartialEq)]
pub struct DetectionScore {
    /// The values of `COCOeval.summarize` in its order, as fractions; the first is the mean average precision. A value is -1 when no
    /// annotated object counts for it.
    pub stats: [f64; STATS],
    /// The number of detections whose score or box is infinite or not a number. They count as in the reference: their score sorts them, last
    /// if it is not a number.
    pub not_finite: usize,
    /// The number of images with a response.
    pub images: usize,
    /// The number of further responses to the same samples, which are ignored.
    pub duplicates: usize,
    /// The indices of the samples without a response, ascending.
    pub missing: Vec<usize>,
}

impl DetectionScore {
    /// Returns the mean average precision in percent.
    #[must_use]
    pub fn percent(&self) -> f64 {
        100.0 * self.stats[0]
    }
}

impl fmt::Display for DetectionScore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&map_line(self.percent()))
    }
}

/// The error when no mean average precision can be computed. Entries count from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DetectionScoreError {
    /// The log cannot be read.
    #[error("the accuracy log cannot be read")]
    Log(#[from] AccuracyLogError),
    /// The log has no entry.
    #[error("the accuracy log has no entry; hint: run in AccuracyOnly or SubmissionRun mode")]
    NoEntry,
    /// No response has a detection. The reference script ends with a traceback.
    #[error(
        "no response of the accuracy log has a detection; hint: is the model trained, and for this dataset?"
    )]
    NoDetection,
    /// An entry names a sample that the dataset does not have.
    #[error(
        "entry {entry} is for sample {index}, but the annotations have {images} images; hint: use the annotations of this dataset"
    )]
    UnknownSample {
        /// The entry's number.
        entry: usize,
        /// The sample in the entry.
        index: u64,
        images: usize,
    },
    /// The response of an entry contains no detections.
    #[error("the response in entry {entry} (sample {index}) has no detections of 7 floats")]
    Detections {
        /// The entry's number.
        entry: usize,
        /// The sample in the entry.
        index: u64,
        /// The cause.
        #[source]
        source: DetectionsError,
    },
}

/// Computes the mean average precision of `entries`, whose classes are as `classes` says. The first response to a sample counts, as in the
/// reference.
///
/// # Errors
/// [`DetectionScoreError`] for the first invalid entry of the log.
pub(crate) fn detection(
    annotations: &Annotations,
    classes: DetectionClasses,
    entries: impl IntoIterator<Item = Result<AccuracyEntry, AccuracyLogError>>,
) -> Result<DetectionScore, DetectionScoreError> {
    let total = annotations.images.len();
    let categories = match classes {
        DetectionClasses::Categories => None,
        DetectionClasses::Ranks => Some(&annotations.ranked_categories[..]),
    };
    let mut has_response = vec![false; total];
    let mut evaluation = Evaluation::new(annotations);
    let (mut entries_read, mut duplicates, mut detections, mut not_finite) = (0, 0, 0, 0);
    for entry in entries {
        let entry = entry?;
        entries_read += 1;
        let index = entry.qsl_idx;
        let unknown = DetectionScoreError::UnknownSample {
            entry: entries_read,
            index,
            images: total,
        };
        let Some(position) = usize::try_from(index).ok().filter(|&position| position < total) else {
            return Err(unknown);
        };
        if std::mem::replace(&mut has_response[position], true) {
            duplicates += 1;
            continue;
        }
        let found = response::read(&entry.data, position, &annotations.images[position], categories)
            .map_err(|source| DetectionScoreError::Detections {
                entry: entries_read,
                index,
                source,
            })?;
        detections += found.len();
        not_finite += found.iter().filter(|detection| !detection.is_finite()).count();
        evaluation.add(position, found);
    }
    if entries_read == 0 {
        return Err(DetectionScoreError::NoEntry);
    }
    if detections == 0 {
        return Err(DetectionScoreError::NoDetection);
    }
    let missing: Vec<usize> = (0..total).filter(|&position| !has_response[position]).collect();
    Ok(DetectionScore {
        stats: average::summarize(evaluation),
        not_finite,
        images: total - missing.len(),
        duplicates,
        missing,
    })
}
