//! Explains why a TEST01 comparison failed, as far as the two logs show it.
//!
//! The explanation has the number of differing responses, their distance and their pattern. It interprets evidence and is not a verdict.
//! The module reads both logs a second time, but only if something differs. If the agent recorded units of the chip beside the audit's log,
//! it names the unit that computed a response ([`regatta_types::response_units`]).

mod evidence;
mod reason;
mod text;
mod units;

use std::path::Path;

use super::{AuditError, Comparison, Mismatch, element::Element};
use evidence::{Differing, InAudit, InReference};
pub use reason::Reason;
pub use units::UnitShare;
use units::Units;

/// The number of differing responses below which no pattern is reported.
const FEW: usize = 8;
/// The relative difference up to which floats differ by arithmetic only.
const ROUNDING: f64 = 1e-2;

/// The differences between first elements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Distances {
    /// The smallest difference.
    pub least: f64,
    /// The median difference.
    pub median: f64,
    /// The largest difference.
    pub greatest: f64,
    /// The largest difference relative to the expected element, or `None` if an expected element is zero.
    pub greatest_relative: Option<f64>,
}

/// The explanation of a failed comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The number of differing responses.
    pub responses: u64,
    /// The number of compared responses.
    pub compared: u64,
    /// The number of different samples among the differing responses that were kept.
    pub samples: usize,
    /// The differences, or `None` if one of them is not a number.
    pub distances: Option<Distances>,
    /// The share of each unit of the chip, if the run recorded its units.
    pub units: Vec<UnitShare>,
    /// Other patterns in the logs.
    pub reasons: Vec<Reason>,
}

/// Explains a comparison of these logs. Reads nothing if nothing differs.
///
/// # Errors
/// Returns an error if a log cannot be read again.
pub fn explain(comparison: &Comparison, reference: &Path, audited: &Path) -> Result<Explanation, AuditError> {
    let differing = Differing::new(&comparison.mismatches);
    let mut reasons = Vec::new();
    let mut units = Vec::new();
    if !comparison.mismatches.is_empty() {
        let mut noted = Units::beside(audited);
        let audit = InAudit::read(audited, comparison, &differing, &mut noted)?;
        let found = InReference::read(reference, comparison, &differing, &audit.lengths)?;
        reasons = read_out(comparison, &audit, &found);
        reasons.extend(noted.fault.map(|why| Reason::UnitsUnknown { why }));
        units = noted.shares;
    }
    Ok(Explanation {
        responses: comparison.counts.mismatches,
        compared: comparison.counts.matches,
        samples: differing.by_sample.len(),
        distances: distances(&comparison.mismatches),
        units,
        reasons,
    })
}

fn read_out(comparison: &Comparison, audit: &InAudit, found: &InReference) -> Vec<Reason> {
    let (counts, kept) = (&comparison.counts, comparison.mismatches.len());
    let mut reasons = Vec::new();
    if counts.mismatches == counts.matches {
        reasons.push(Reason::All);
    }
    let shifted = found.shifts.iter().max_by_key(|(_, count)| **count);
    if let Some((&by, &count)) = shifted
        && kept >= FEW
        && count * 20 >= kept * 19
    {
        reasons.push(Reason::Shifted { by });
    } else if found.of_other_samples > 0 {
        reasons.push(Reason::OfOtherSamples {
            count: found.of_other_samples,
        });
    }
    let against_audited = comparison.mismatches.iter().filter(|one| one.against_audited);
    match against_audited.count() as u64 {
        0 => {}
        count => reasons.push(Reason::AuditDisagrees { count }),
    }
    if counts.reference_mismatches > 0 {
        reasons.push(Reason::ReferenceDisagrees {
            count: counts.reference_mismatches,
        });
    }
    if let Some((qsl_idx, expected, actual)) = found.other_length {
        reasons.push(Reason::Lengths {
            count: found.other_lengths,
            qsl_idx,
            expected,
            actual,
        });
    }
    reasons.extend(audit.period());
    if comparison.mismatches.iter().all(is_rounding) {
        reasons.push(Reason::Rounding);
    }
    if counts.mismatches * 20 <= counts.matches {
        reasons.push(Reason::Few);
    }
    reasons
}

fn is_rounding(one: &Mismatch) -> bool {
    match (one.expected, one.actual) {
        (Some(expected @ Element::Float(_)), Some(actual)) => expected
            .distance(actual)
            .is_some_and(|distance| distance <= ROUNDING * expected.magnitude()),
        _ => false,
    }
}

fn distances(mismatches: &[Mismatch]) -> Option<Distances> {
    let mut all = Vec::new();
    let mut greatest_relative = Some(0.0_f64);
    for one in mismatches {
        let expected = one.expected?;
        let distance = expected.distance(one.actual?)?;
        all.push(distance);
        greatest_relative = match greatest_relative {
            Some(greatest) if expected.magnitude() > 0.0 => {
                Some(greatest.max(distance / expected.magnitude()))
            }
            _ => None,
        };
    }
    all.sort_by(f64::total_cmp);
    Some(Distances {
        least: *all.first()?,
        median: *all.get(all.len() / 2)?,
        greatest: *all.last()?,
        greatest_relative,
    })
}
