//! Why a TEST01 comparison failed, as far as the two logs tell it: how many responses differ, how far, and by what rule.
//!
//! It reads both logs a second time, which is worth its while only when something differs. What it says is a reading of
//! evidence, not a verdict. Which unit of the chip computed a response is told where the agent noted it beside the audit's
//! log ([`regatta_types::response_units`]).

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

/// So many responses must differ before a rule is read out of them.
const FEW: usize = 8;
/// Floats nearer than this, relative to their size, differ by arithmetic alone.
const ROUNDING: f64 = 1e-2;

/// How far apart first elements are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Distances {
    /// The smallest.
    pub least: f64,
    /// Half are smaller.
    pub median: f64,
    /// The largest.
    pub greatest: f64,
    /// The largest in relation to the expected element's size; `None` where one of those is zero.
    pub greatest_relative: Option<f64>,
}

/// An explanation.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// Differing responses.
    pub responses: u64,
    /// Compared responses.
    pub compared: u64,
    /// Different samples among the differing responses (those that were kept).
    pub samples: usize,
    /// How far apart they are; `None` where that is no number.
    pub distances: Option<Distances>,
    /// What each unit of the chip had to do with it, where the run noted its units.
    pub units: Vec<UnitShare>,
    /// What else shows.
    pub reasons: Vec<Reason>,
}

/// Explains a comparison of these logs; nothing is read when nothing differs.
///
/// # Errors
/// When a log cannot be read again.
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
