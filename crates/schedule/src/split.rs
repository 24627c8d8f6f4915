//! How to cut one query among units when nothing follows it, as in MultiStream: the cut whose slowest part is quickest.

use crate::times::ServiceTimes;

/// Samples per unit, and how long the slowest part is expected to take, in seconds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Split {
    /// Samples per unit.
    pub portions: Vec<usize>,
    /// Seconds until the last is done.
    pub seconds: f64,
}

/// The best cut of `samples` over one of the `sets` (who is in, and how many times longer each unit then takes than in
/// `alone`): the one whose last batch is expected to be done first. A portion that is larger than its unit's largest
/// batch is meant as several, one after the other.
#[must_use]
pub fn best(alone: &[ServiceTimes], sets: &[(Vec<bool>, Vec<f64>)], samples: usize) -> Split {
    let cuts = sets
        .iter()
        .filter(|(set, _)| set.contains(&true))
        .map(|(set, longer)| cut(alone, set, longer, samples));
    cuts.min_by(|one, other| one.seconds.total_cmp(&other.seconds))
        .unwrap_or_default()
}

/// Cuts for one set, by bisection on the time at which all is done.
fn cut(alone: &[ServiceTimes], set: &[bool], longer: &[f64], samples: usize) -> Split {
    let within = |end: f64| {
        let units = alone.iter().zip(set.iter().zip(longer));
        units.map(move |(times, (&is_in, longer))| {
            if is_in {
                times.capacity(times.max_batch(), end / longer)
            } else {
                0
            }
        })
    };
    let (mut too_early, mut enough) = (0.0, 1e-6);
    while within(enough).fold(0, usize::saturating_add) < samples {
        enough *= 2.0;
    }
    for _ in 0..40 {
        let middle = f64::midpoint(too_early, enough);
        if within(middle).fold(0, usize::saturating_add) < samples {
            too_early = middle;
        } else {
            enough = middle;
        }
    }
    let mut left = samples;
    let portions = within(enough).map(|most| {
        let portion = most.min(left);
        left -= portion;
        portion
    });
    Split {
        portions: portions.collect(),
        seconds: enough,
    }
}
