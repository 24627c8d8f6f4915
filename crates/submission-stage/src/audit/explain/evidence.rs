//! Collects evidence about differing responses in a second pass over both logs. The parent module interprets it.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use super::{Comparison, Mismatch, Reason, Units};
use crate::audit::{
    AuditError,
    responses::{Answer, LoggedAnswers},
};

/// The shifts of sample indices that are tested. Indices from 1 instead of 0, or a padded batch, cause such shifts.
const SHIFTS: std::ops::RangeInclusive<i64> = -4..=4;
/// The periods in the order of issue that are tested, for units or batch places that alternate.
const PERIODS: std::ops::RangeInclusive<u64> = 2..=16;
/// The number of differing responses that must be expected, and absent, before this counts as a pattern.
///
/// Chance produces such a pattern once in 160,000 cases.
const EXPECTED: f64 = 12.0;
/// The length in bytes from which equal responses are not a coincidence.
const DISTINCTIVE_BYTES: u64 = 16;

/// The differing responses by their lookup keys.
pub(super) struct Differing<'a> {
    /// The first differing response of each sample.
    pub(super) by_sample: HashMap<u64, &'a Mismatch>,
    marks: HashSet<u64>,
    entries: HashSet<u64>,
}

impl<'a> Differing<'a> {
    pub(super) fn new(mismatches: &'a [Mismatch]) -> Self {
        let mut by_sample = HashMap::new();
        for one in mismatches {
            by_sample.entry(one.qsl_idx).or_insert(one);
        }
        Self {
            by_sample,
            marks: mismatches.iter().map(|one| one.mark).collect(),
            entries: mismatches.iter().map(|one| one.entry).collect(),
        }
    }
}

/// The evidence in the audit's log.
pub(super) struct InAudit {
    /// The lengths of the differing responses, by sample.
    pub(super) lengths: HashMap<u64, u64>,
    /// The number of entries, and of those that differ, for each period and remainder.
    turns: Vec<(u64, Vec<[u64; 2]>)>,
}

impl InAudit {
    pub(super) fn read(
        path: &Path,
        comparison: &Comparison,
        differing: &Differing<'_>,
        units: &mut Units,
    ) -> Result<Self, AuditError> {
        let mut seen = Self {
            lengths: HashMap::new(),
            turns: PERIODS
                .map(|period| (period, vec![[0; 2]; period as usize]))
                .collect(),
        };
        let mut answers = LoggedAnswers::open(path, comparison.dtype, true)?;
        while let Some(answer) = answers.next()? {
            let differs = differing.entries.contains(&answers.count());
            if differs {
                seen.lengths.entry(answer.qsl_idx).or_insert(answer.bytes);
            }
            units.count(answer.seq_id, differs);
            for (period, turns) in &mut seen.turns {
                if let Some([all, differing]) = turns.get_mut((answer.seq_id % *period) as usize) {
                    *all += 1;
                    *differing += u64::from(differs);
                }
            }
        }
        Ok(seen)
    }

    /// Returns the shortest period for which some remainders have no differing response although many are expected.
    pub(super) fn period(&self) -> Option<Reason> {
        self.turns.iter().find_map(|(period, turns)| {
            let sum = |part: fn(&[u64; 2]) -> u64| turns.iter().map(part).sum::<u64>() as f64;
            let rate = sum(|turn| turn[1]) / sum(|turn| turn[0]);
            let spared = sum(|turn| if turn[1] == 0 { turn[0] } else { 0 });
            let remainders = (0..).zip(turns).filter(|(_, turn)| turn[1] > 0);
            (spared * rate >= EXPECTED).then(|| Reason::Periodic {
                period: *period,
                remainders: remainders.map(|(remainder, _)| remainder).collect(),
            })
        })
    }
}

/// The evidence in the accuracy run's log.
#[derive(Default)]
pub(super) struct InReference {
    /// The number of differing responses that equal the response of a sample shifted by the key.
    pub(super) shifts: HashMap<i64, usize>,
    pub(super) of_other_samples: u64,
    pub(super) other_lengths: u64,
    /// The index of a sample with two lengths, and both lengths.
    pub(super) other_length: Option<(u64, u64, u64)>,
}

impl InReference {
    pub(super) fn read(
        path: &Path,
        comparison: &Comparison,
        differing: &Differing<'_>,
        lengths: &HashMap<u64, u64>,
    ) -> Result<Self, AuditError> {
        let mut seen = Self::default();
        let mut places = HashMap::new();
        let mut answers = LoggedAnswers::open(path, comparison.dtype, false)?;
        while let Some(answer) = answers.next()? {
            seen.look_for_shifts(&answer, differing);
            let mark = answer.mark;
            if answer.bytes >= DISTINCTIVE_BYTES && differing.marks.contains(&mark) {
                places.insert(mark, answer.qsl_idx);
            }
            if let Some(&actual) = lengths.get(&answer.qsl_idx)
                && actual != answer.bytes
            {
                seen.other_lengths += 1;
                seen.other_length
                    .get_or_insert((answer.qsl_idx, answer.bytes, actual));
            }
        }
        let elsewhere = comparison
            .mismatches
            .iter()
            .filter(|one| places.get(&one.mark).is_some_and(|&sample| sample != one.qsl_idx));
        seen.of_other_samples = elsewhere.count() as u64;
        Ok(seen)
    }

    fn look_for_shifts(&mut self, answer: &Answer, differing: &Differing<'_>) {
        for by in SHIFTS {
            let sample = answer.qsl_idx.checked_add_signed(-by);
            if let Some(one) = sample.and_then(|sample| differing.by_sample.get(&sample))
                && by != 0
                && one.mark == answer.mark
            {
                *self.shifts.entry(by).or_default() += 1;
            }
        }
    }
}
