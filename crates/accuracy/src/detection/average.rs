//! Averages over categories and thresholds, as `COCOeval.accumulate` and `summarize` compute them, with NumPy's order of additions.

use super::matching::{Evaluation, RANGES, Scored, THRESHOLDS, highest_first, linspace};

/// The number of values that `COCOeval.summarize` prints.
pub(super) const STATS: usize = 12;
/// The recalls at which the precision is sampled, from 0 to 1.
const RECALLS: usize = 101;
/// The numbers of detections of an image and a category for which the recall is summarized.
const LIMITS: [usize; 3] = [1, 10, 100];
/// NumPy's spacing of 1, which keeps quotients of zeros defined.
const SPACING: f64 = f64::EPSILON;
/// The position of the threshold 0.75.
const THREE_QUARTERS: usize = 5;

/// Precisions at each recall, and the last recall, for each threshold of one category.
struct Curves {
    precisions: [[f64; RECALLS]; THRESHOLDS],
    recalls: [f64; THRESHOLDS],
}

/// Returns the 12 values of `COCOeval.summarize`.
pub(super) fn summarize(mut evaluation: Evaluation<'_>) -> [f64; STATS] {
    for scored in &mut evaluation.scored {
        scored.sort_by(|one, other| highest_first(one.score, other.score).then(one.image.cmp(&other.image)));
    }
    let curves = |range: usize, limit: usize| -> Vec<Curves> {
        let categories = evaluation.scored.iter().zip(&evaluation.objects);
        categories
            .filter(|(_, objects)| objects[range] > 0)
            .map(|(scored, objects)| curve(scored, range, limit, objects[range]))
            .collect()
    };
    let [most_1, most_10, most_100] = LIMITS;
    let all = curves(0, most_100);
    let by_area: [Vec<Curves>; RANGES - 1] = std::array::from_fn(|range| curves(range + 1, most_100));
    let every = 0..THRESHOLDS;
    let [small, medium, large] = &by_area;
    [
        precision(&all, every.clone()),
        precision(&all, 0..1),
        precision(&all, THREE_QUARTERS..THREE_QUARTERS + 1),
        precision(small, every.clone()),
        precision(medium, every.clone()),
        precision(large, every),
        recall(&curves(0, most_1)),
        recall(&curves(0, most_10)),
        recall(&all),
        recall(small),
        recall(medium),
        recall(large),
    ]
}

/// Returns the curves of a category from its detections, sorted by score. `objects` is not 0.
fn curve(scored: &[Scored], range: usize, limit: usize, objects: usize) -> Curves {
    let at: [f64; RECALLS] = linspace(0.0, 1.0);
    let mut curves = Curves {
        precisions: [[0.0; RECALLS]; THRESHOLDS],
        recalls: [0.0; THRESHOLDS],
    };
    let counted = || scored.iter().filter(|one| usize::from(one.rank) < limit);
    let (mut recalls, mut precisions) = (Vec::new(), Vec::new());
    for threshold in 0..THRESHOLDS {
        let (mut right, mut wrong) = (0.0, 0.0);
        recalls.clear();
        precisions.clear();
        for matches in counted().map(|one| one.areas[range]) {
            let is = |flags: u16| flags >> threshold & 1 == 1;
            if !is(matches.ignored) {
                *(if is(matches.matched) {
                    &mut right
                } else {
                    &mut wrong
                }) += 1.0;
            }
            recalls.push(right / objects as f64);
            precisions.push(right / (wrong + right + SPACING));
        }
        for place in (1..precisions.len()).rev() {
            if precisions[place] > precisions[place - 1] {
                precisions[place - 1] = precisions[place];
            }
        }
        curves.recalls[threshold] = recalls.last().copied().unwrap_or(0.0);
        for (sampled, &least) in curves.precisions[threshold].iter_mut().zip(&at) {
            let first = recalls.partition_point(|&recall| recall < least);
            let Some(&precision) = precisions.get(first) else {
                break;
            };
            *sampled = precision;
        }
    }
    curves
}

fn precision(categories: &[Curves], thresholds: std::ops::Range<usize>) -> f64 {
    let mut values = Vec::with_capacity(thresholds.len() * RECALLS * categories.len());
    for threshold in thresholds {
        for recall in 0..RECALLS {
            values.extend(categories.iter().map(|one| one.precisions[threshold][recall]));
        }
    }
    mean(&values)
}

fn recall(categories: &[Curves]) -> f64 {
    let mut values = Vec::with_capacity(THRESHOLDS * categories.len());
    for threshold in 0..THRESHOLDS {
        values.extend(categories.iter().map(|one| one.recalls[threshold]));
    }
    mean(&values)
}

/// Returns the mean, or -1 of nothing.
fn mean(values: &[f64]) -> f64 {
    if values.is_empty() {
        return -1.0;
    }
    sum(values) / values.len() as f64
}

/// Adds numbers in the order of `numpy.sum`: in pairs of blocks, each with 8 partial sums.
fn sum(values: &[f64]) -> f64 {
    const LANES: usize = 8;
    const BLOCK: usize = 128;
    if values.len() < LANES {
        return values.iter().fold(0.0, |sum, value| sum + value);
    }
    if values.len() > BLOCK {
        let half = values.len() / 2;
        let (first, second) = values.split_at(half - half % LANES);
        return sum(first) + sum(second);
    }
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = chunks[0];
    for chunk in &chunks[1..] {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += value;
        }
    }
    let [a, b, c, d, e, f, g, h] = lanes;
    let first = ((a + b) + (c + d)) + ((e + f) + (g + h));
    rest.iter().fold(first, |sum, value| sum + value)
}
