//! TEST01's comparison of responses (`verify_accuracy.py`).
//!
//! The first response of a sample in the accuracy run counts. Each response of the audit's run is compared with what is
//! kept of its sample, in its first element alone, and then takes its place: a later one is compared with it.

use std::{fmt::Write as _, path::Path};

use super::{
    AuditError, Dtype,
    element::Element,
    responses::{Answer, Answers, Response, Responses, Shape},
};

/// How many differing responses are kept for the explanation.
const KEPT: usize = 1 << 16;

/// What `verify_accuracy.py` counts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccuracyCounts {
    /// Entries of the accuracy run's log.
    pub reference_entries: u64,
    /// Those of a sample that had one before.
    pub reference_duplicates: u64,
    /// Duplicates whose response differs from the sample's first.
    pub reference_mismatches: u64,
    /// Entries of the audit's log.
    pub audited_entries: u64,
    /// Those of a known sample.
    pub matches: u64,
    /// Those whose first element differs.
    pub mismatches: u64,
    /// Those of a sample that is not known.
    pub unknown: u64,
    /// Whether the comparison is passed.
    pub passed: bool,
}

impl AccuracyCounts {
    /// The text of `verify_accuracy.txt`.
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
    /// Its entry in the audit's log, from 1.
    pub entry: u64,
    /// Its number in order of issue.
    pub seq_id: u64,
    /// Its sample.
    pub qsl_idx: u64,
    /// The first element that was expected; `None` where the response was empty.
    pub expected: Option<Element>,
    /// The first element that came.
    pub actual: Option<Element>,
    /// Whether it was expected because of an earlier response in the audit's own log.
    pub against_audited: bool,
    /// Marks the digits that came, to find them again.
    pub(super) mark: u64,
}

/// A comparison with what is needed to explain it.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The official counts.
    pub counts: AccuracyCounts,
    /// The first 65,536 differing responses.
    pub mismatches: Vec<Mismatch>,
    /// How the responses were read.
    pub dtype: Dtype,
}

/// Compares the log of the accuracy run with that of the audit's run. Logs go by; 8 bytes stay of each sample, 12 where elements have 8.
///
/// # Errors
/// When a log cannot be read, is none, was truncated, or holds responses that are no whole number of elements.
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
    let mut answers = Answers::open(audited, dtype, true)?;
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
    let mut answers = Answers::open(path, dtype, false)?;
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

/// A log compared with itself always passes: whoever asks for that has mistaken a path.
fn refuse_same(reference: &Path, audited: &Path) -> Result<(), AuditError> {
    match (reference.canonicalize(), audited.canonicalize()) {
        (Ok(one), Ok(other)) if one == other => Err(AuditError::SameFile { path: one }),
        _ => Ok(()),
    }
}
