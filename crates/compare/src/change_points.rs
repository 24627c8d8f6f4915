//! Change points of a series, equal to those of Apache Otava 0.8: e-divisive means in sliding windows, then removal of the weakest points
//! by Student's t-test (Matteson and James 2014; Fleming et al. 2023).
//!
//! It follows Otava's `compute_change_points` with its defaults step by step, also where another choice would be possible.

use crate::student::{Sample, p_value};

/// The number of values that are looked at together.
const WINDOW: usize = 50;
/// The largest p-value of a change point.
const MAX_P: f64 = 0.001;
/// The largest p-value of a candidate, ten times that of a change point.
const MAX_CANDIDATE_P: f64 = 0.01;

/// A place at which the level of a series changes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// The position of the first value of the new level.
    pub position: usize,
    /// The mean of the values back to the change point before.
    pub mean_before: f64,
    /// The mean of the values up to the next change point.
    pub mean_after: f64,
    /// The p-value of Student's t-test between the two.
    pub p_value: f64,
}

impl ChangePoint {
    fn of(series: &[f64], begin: usize, position: usize, end: usize) -> Self {
        let [before, after] = [begin..position, position..end].map(|range| Sample::of(&series[range]));
        Self {
            position,
            mean_before: before.mean,
            mean_after: after.mean,
            p_value: p_value(before, after),
        }
    }

    /// Returns the larger of the relative changes forwards and backwards.
    fn magnitude(&self) -> f64 {
        let relative = |from: f64, to: f64| if from == 0.0 { 0.0 } else { (to / from - 1.0).abs() };
        relative(self.mean_before, self.mean_after).max(relative(self.mean_after, self.mean_before))
    }
}

/// Returns the change points of a series of finite values, in their order.
#[must_use]
pub fn change_points(series: &[f64]) -> Vec<ChangePoint> {
    without_weak_points(series, &candidates(series))
}

/// Finds the candidates of all windows.
fn candidates(series: &[f64]) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::new();
    let mut start = 0;
    while start < series.len() {
        let end = series.len().min(start + WINDOW);
        let in_window = split(&series[start..end])
            .into_iter()
            .map(|position| position + start);
        let in_window: Vec<usize> = in_window.collect();
        let last = in_window.last().copied().unwrap_or(0);
        start = last.max(start + WINDOW / 2);
        found.extend(in_window);
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Splits a window at the place where its parts differ most, as long as they differ significantly.
fn split(window: &[f64]) -> Vec<usize> {
    let distances = PairSums::of(window);
    let mut found: Vec<usize> = Vec::new();
    loop {
        let ends: Vec<usize> = [0]
            .into_iter()
            .chain(found.iter().copied())
            .chain([window.len()])
            .collect();
        let mut best: Option<(f64, [usize; 3])> = None;
        for part in ends.windows(2).filter(|part| part[1] - part[0] > 1) {
            let (position, difference) = distances.largest_difference(part[0], part[1]);
            if best.is_none_or(|(most, _)| difference > most) {
                best = Some((difference, [part[0], position, part[1]]));
            }
        }
        let Some((_, [begin, position, end])) = best else {
            return found;
        };
        let is_significant = ChangePoint::of(window, begin, position, end).p_value <= MAX_CANDIDATE_P;
        if !is_significant {
            return found;
        }
        found.push(position);
        found.sort_unstable();
    }
}

/// The sums of distances between all values of each range of a window.
struct PairSums {
    /// The sum for the range from the first index to before the second.
    sums: Vec<Vec<f64>>,
}

impl PairSums {
    fn of(window: &[f64]) -> Self {
        let sums = (0..window.len()).map(|begin| {
            let mut sums = vec![0.0; window.len() + 1];
            for end in begin + 1..=window.len() {
                let last = window[end - 1];
                let to_last = window[begin..end - 1].iter().map(|value| (value - last).abs());
                sums[end] = sums[end - 1] + to_last.sum::<f64>();
            }
            sums
        });
        Self { sums: sums.collect() }
    }

    /// Returns the position in a part, with two values or more, at which the values before differ most from those that follow up to any
    /// end, and that difference. The first of equal ones in the order of position and end.
    fn largest_difference(&self, begin: usize, part_end: usize) -> (usize, f64) {
        let mut best = (begin + 1, f64::NEG_INFINITY);
        for position in begin + 1..part_end {
            // Otava's matrix has zeros where the end would not be after the position.
            let before = (begin + 2..=position).map(|_| 0.0);
            let after = (position + 1..=part_end).map(|end| self.difference(begin, position, end));
            for difference in before.chain(after) {
                if difference > best.1 {
                    best = (position, difference);
                }
            }
        }
        best
    }

    /// Returns the scaled energy distance of two neighbouring ranges.
    fn difference(&self, begin: usize, position: usize, end: usize) -> f64 {
        let [left, right, all] = [
            self.sums[begin][position],
            self.sums[position][end],
            self.sums[begin][end],
        ];
        let [n, m] = [position - begin, end - position].map(|size| size as f64);
        let within = |sum: f64, other: f64, own: f64| {
            if own > 1.0 {
                2.0 * other / (n + m) / (own - 1.0) * sum
            } else {
                0.0
            }
        };
        2.0 / (n + m) * (all - left - right) - within(left, m, n) - within(right, n, m)
    }
}

/// Removes the weakest point until every one is significant.
fn without_weak_points(series: &[f64], candidates: &[usize]) -> Vec<ChangePoint> {
    let recomputed = |points: &[ChangePoint], index: usize| {
        let begin = index.checked_sub(1).map_or(0, |before| points[before].position);
        let end = points.get(index + 1).map_or(series.len(), |next| next.position);
        ChangePoint::of(series, begin, points[index].position, end)
    };
    let mut points: Vec<ChangePoint> = candidates
        .iter()
        .map(|&position| ChangePoint::of(series, 0, position, series.len()))
        .collect();
    for index in 0..points.len() {
        points[index] = recomputed(&points, index);
    }
    while let Some(weakest) = index_of_largest(&points, |point| point.p_value) {
        let mut removed = weakest;
        if points[weakest].p_value < MAX_P {
            removed = index_of_largest(&points, |point| -point.magnitude()).unwrap_or(weakest);
            if points[removed].magnitude() > 0.0 {
                break;
            }
        }
        points.remove(removed);
        // Otava computes these two again, and not the one before.
        for index in [removed, removed + 1] {
            if index < points.len() {
                points[index] = recomputed(&points, index);
            }
        }
    }
    points
}

/// Returns the index of the first point with the largest value. Like Python's `max`, it keeps a NaN in the first place only.
fn index_of_largest(points: &[ChangePoint], value: impl Fn(&ChangePoint) -> f64) -> Option<usize> {
    let indices = 0..points.len();
    indices.reduce(|best, index| {
        if value(&points[index]) > value(&points[best]) {
            index
        } else {
            best
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_step_is_found_where_it_is_and_noise_is_none() {
        let noise = |index: usize| ((index * 7919) % 13) as f64 / 100.0;
        let step: Vec<f64> = (0..60)
            .map(|index| noise(index) + if index < 33 { 10.0 } else { 11.0 })
            .collect();
        let found = change_points(&step);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].position, 33);
        assert!(found[0].mean_after > found[0].mean_before + 0.9 && found[0].p_value < 1e-9);
        assert_eq!(change_points(&step[..33]), []);
        assert_eq!(change_points(&[]), []);
        assert_eq!(change_points(&[1.0]), []);
        assert_eq!(change_points(&[5.0; 40]), []);
    }

    proptest! {
        #[test]
        fn any_series_has_points_inside_it_in_order(series in proptest::collection::vec(0.001..1e6_f64, 0..120)) {
            let positions: Vec<usize> = change_points(&series).iter().map(|point| point.position).collect();
            prop_assert!(positions.is_sorted_by(|a, b| a < b));
            prop_assert!(positions.iter().all(|position| (1..series.len()).contains(position)));
        }
    }
}
