//! TEST01's comparison of responses (`verify_accuracy.py`).
//!
//! The first response to a sample in the accuracy run is its reference. Each response of the audit's run is compared with the
//! reference by the first element only. It then becomes the reference for later responses to the same sample.

use std::{fmt::Write as _, path::Path};

use super::{
    AuditError, Dtype,
    element::Element,
    responses::{Answer, LoggedAnswers, Response, Responses, Shape},
};

/// The number of differing responses that are kept for the explanation.
const KEPT: usize = 1 << 16;

/// The counters of `verify_accuracy.py`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccuracyCounts {
    /// The number of entries in the accuracy run's log.
    pub reference_entries: u64,
    /// The number of these entries whose sample had an earlier entry.
    pub reference_duplicates: u64,
    /// The number of duplicates whose response differs from the sample's first response.
    pub reference_mismatches: u64,
    /// The number of entries in the audit's log.
    pub audited_entries: u64,
    /// The number of these entries with a known sample.
    pub matches: u64,
    /// The number of these entries whose first element differs.
    pub mismatches: u64,
    /// The number of these entries with an unknown sample.
    pub unknown: u64,
    /// Whether the comparison passes.
    pub passed: bool,
}

impl AccuracyCounts {
    /// Returns the text of `verify_accuracy.txt`.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = "Verifying accuracy. This might take a while...\n\
                        Reading accuracy mode results...\n\
                        Reading performance mode results...\n"
            .to_owned();
        for (name, count) in [
            ("num_acc_log_entries", self.reference_entries),
            ("num_acc_log_duplicate_keys", self.reference_duplicates),
            ("num_acc_log_data_mismatch", self.reference_mismatches),
            ("num_perf_log_entries", self.audited_entries),
            ("num_perf_log_qsl_idx_match", self.matches),
            ("num_perf_log_data_mismatch", self.mismatches),
            ("num_missing_qsl_idxs", self.unknown),
        ] {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{name} = {count}");
        }
        text.push_str(if self.passed {
            "TEST PASS\n\n"
        } else {
            "TEST FAIL\n\n"
        });
        text
    }
}

/// A response of the audit's run whose first element differs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mismatch {
    /// The number of its entry in the audit's log, from 1.
    pub entry: u64,
    /// Its sequence number in order of issue.
    pub seq_id: u64,
    /// The index of its sample.
    pub qsl_idx: u64,
    /// The expected first element, or `None` if the expected response is empty.
    pub expected: Option<Element>,
    /// The first element of this response, or `None` if it is empty.
    pub actual: Option<Element>,
    /// Whether the expected element comes from an earlier response in the audit's own log.
    pub against_audited: bool,
    /// A checksum of the response, to find the same response again.
    pub(super) mark: u64,
}

/// A comparison, with the data to explain it.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The official counters.
    pub counts: AccuracyCounts,
    /// The first 65,536 differing responses.
    pub mismatches: Vec<Mismatch>,
    /// The data type of the responses.
    pub dtype: Dtype,
}

/// Compares the log of the accuracy run with the log of the audit's run.
///
/// The logs are streamed. Each sample takes 8 bytes of memory, or 12 where elements have 8 bytes.
///
/// # Errors
/// Returns an error if both paths are the same file. Fails if a log cannot be read, is not an accuracy log or was truncated. Also
/// fails if a response is not an integer number of elements.
pub fn compare_accuracy(
    reference: &Path,
    audited: &Path,
    dtype: Dtype,
    needs_a_match: bool,
) -> Result<Comparison, AuditError> {
    refuse_same(reference, audited)?;
    let mut counts = AccuracyCounts::default();
    let mut responses = take_reference(reference, dtype, &mut counts)?;
    let mut mismatches = Vec::new();
    let mut answers = LoggedAnswers::open(audited, dtype, true)?;
    while let Some(answer) = answers.next()? {
        if answer.response.shape == Shape::Ragged {
            return Err(AuditError::Ragged {
                path: audited.to_owned(),
                qsl_idx: answer.qsl_idx,
                dtype,
            });
        }
        match responses.get(answer.qsl_idx) {
            None => counts.unknown += 1,
            Some(kept) if kept.shape == Shape::Ragged => {
                return Err(AuditError::Ragged {
                    path: reference.to_owned(),
                    qsl_idx: answer.qsl_idx,
                    dtype,
                });
            }
            Some(kept) => {
                counts.matches += 1;
                if kept.element(dtype) != answer.response.element(dtype) {
                    counts.mismatches += 1;
                    if mismatches.len() < KEPT {
                        mismatches.push(mismatch(answers.count(), &answer, &kept, dtype));
                    }
                }
            }
        }
        responses.set(answer.qsl_idx, answer.response);
    }
    counts.audited_entries = answers.count();
    counts.passed = counts.mismatches == 0 && (counts.matches > 0 || !needs_a_match);
    Ok(Comparison {
        counts,
        mismatches,
        dtype,
    })
}

fn take_reference(path: &Path, dtype: Dtype, counts: &mut AccuracyCounts) -> Result<Responses, AuditError> {
    let mut answers = LoggedAnswers::open(path, dtype, false)?;
    let mut responses = Responses::for_log(answers.log_bytes, dtype);
    while let Some(answer) = answers.next()? {
        match responses.get(answer.qsl_idx) {
            None => responses.set(answer.qsl_idx, answer.response),
            Some(kept) => {
                counts.reference_duplicates += 1;
                counts.reference_mismatches += u64::from(kept != answer.response);
            }
        }
    }
    counts.reference_entries = answers.count();
    Ok(responses)
}

fn mismatch(entry: u64, answer: &Answer, kept: &Response, dtype: Dtype) -> Mismatch {
    Mismatch {
        entry,
        seq_id: answer.seq_id,
        qsl_idx: answer.qsl_idx,
        expected: kept.element(dtype),
        actual: answer.response.element(dtype),
        against_audited: kept.audited,
        mark: answer.mark,
    }
}

/// Refuses to compare a log with itself: that always passes, so a path must be wrong.
fn refuse_same(reference: &Path, audited: &Path) -> Result<(), AuditError> {
    match (reference.canonicalize(), audited.canonicalize()) {
        (Ok(one), Ok(other)) if one == other => Err(AuditError::SameFile { path: one }),
        _ => Ok(()),
    }
}
