//! The split of one query among units when no other query follows at once, as in MultiStream: minimises the time of the
//! slowest portion.

use crate::service_times::ServiceTimes;

/// A split of a query among units, with its expected duration.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct QuerySplit {
    /// The samples per unit.
    pub portions: Vec<usize>,
    /// The expected seconds until the last sample is done.
    pub seconds: f64,
}

/// Returns the split of `samples` whose last batch is expected to end first. Each of the `sets` contains the participating
/// units and the factors by which they take longer than in `alone`. A portion above its unit's largest batch represents
/// several batches in sequence.
#[must_use]
pub fn best_split(alone: &[ServiceTimes], sets: &[(Vec<bool>, Vec<f64>)], samples: usize) -> QuerySplit {
    let splits = sets
        .iter()
        .filter(|(set, _)| set.contains(&true))
        .map(|(set, slowdown)| split_for_set(alone, set, slowdown, samples));
    splits
        .min_by(|one, other| one.seconds.total_cmp(&other.seconds))
        .unwrap_or_default()
}

/// Returns the best split for one set, by bisection on the end time.
fn split_for_set(alone: &[ServiceTimes], set: &[bool], slowdown: &[f64], samples: usize) -> QuerySplit {
    let within = |end: f64| {
        let units = alone.iter().zip(set.iter().zip(slowdown));
        units.map(move |(times, (&takes_part, slowdown))| {
            if takes_part {
                times.capacity(times.max_batch(), end / slowdown)
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
    QuerySplit {
        portions: portions.collect(),
        seconds: enough,
    }
}
