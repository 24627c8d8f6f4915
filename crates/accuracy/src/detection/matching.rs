//! Compares an image's detections with its annotated objects, as `COCOeval.computeIoU` and `evaluateImg` do for boxes. Computes no
//! averages.

use std::cmp::Ordering;

use super::response::Detection;
use regatta_datasets::annotations::{Annotation, Annotations};

/// The thresholds of the overlap, from 0.50 to 0.95.
pub(super) const THRESHOLDS: usize = 10;
/// Ranges of area in square pixels: all, small, medium, large.
const AREAS: [(f64, f64); RANGES] = [(0.0, 1e10), (0.0, 1024.0), (1024.0, 9216.0), (9216.0, 1e10)];
/// The number of ranges of area.
pub(super) const RANGES: usize = 4;
/// The most detections of an image and a category that count.
const MAX: usize = 100;

/// The flags of a detection at each threshold, as bits.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Matches {
    /// Whether it matches an object.
    pub(super) matched: u16,
    /// Whether it does not count.
    pub(super) ignored: u16,
}

/// A matched detection, without its box.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scored {
    pub(super) score: f32,
    /// The place of its image in the order of identifiers.
    pub(super) image: u32,
    /// Its place among the image's detections of the category, by score.
    pub(super) rank: u8,
    pub(super) areas: [Matches; RANGES],
}

/// The detections of all images so far.
#[derive(Debug)]
pub(super) struct Evaluation<'a> {
    annotations: &'a Annotations,
    thresholds: [f64; THRESHOLDS],
    /// The place of each image in the order of identifiers.
    order: Vec<u32>,
    /// For each category, its detections.
    pub(super) scored: Vec<Vec<Scored>>,
    /// For each category and range of area, the number of objects that count.
    pub(super) objects: Vec<[usize; RANGES]>,
}

impl<'a> Evaluation<'a> {
    pub(super) fn new(annotations: &'a Annotations) -> Self {
        let mut sorted: Vec<usize> = (0..annotations.images.len()).collect();
        sorted.sort_by_key(|&position| annotations.images[position].id);
        let mut order = vec![0; sorted.len()];
        for (place, position) in (0..).zip(sorted) {
            order[position] = place;
        }
        Self {
            annotations,
            thresholds: linspace(0.5, 0.95),
            order,
            scored: vec![Vec::new(); annotations.categories.len()],
            objects: vec![[0; RANGES]; annotations.categories.len()],
        }
    }

    /// Adds the detections of the image at `position`. Detections of unknown categories do not count.
    pub(super) fn add(&mut self, position: usize, mut detections: Vec<Detection>) {
        let objects = &self.annotations.objects[position];
        let place = |category: i64| self.annotations.categories.binary_search(&category).ok();
        for object in objects {
            let Some(category) = place(object.category_id) else {
                continue;
            };
            for (count, range) in self.objects[category].iter_mut().zip(AREAS) {
                *count += usize::from(!is_ignored(object, range));
            }
        }
        // The sort keeps the order of equal scores.
        detections.sort_by(|one, other| {
            let by_score = highest_first(one.score, other.score);
            one.category.cmp(&other.category).then(by_score)
        });
        for group in detections.chunk_by(|one, other| one.category == other.category) {
            let Some(category) = place(group[0].category) else {
                continue;
            };
            let own = objects
                .iter()
                .filter(|object| object.category_id == group[0].category);
            let own: Vec<&Annotation> = own.collect();
            let group = &group[..group.len().min(MAX)];
            let areas = AREAS.map(|range| match_objects(group, &own, range, &self.thresholds));
            let image = self.order[position];
            self.scored[category].extend(group.iter().enumerate().map(|(rank, detection)| Scored {
                score: detection.score,
                image,
                rank: rank as u8,
                areas: std::array::from_fn(|range| areas[range][rank]),
            }));
        }
    }
}

/// Orders scores like NumPy's sort of their negatives: NaN comes last.
pub(super) fn highest_first(one: f32, other: f32) -> Ordering {
    let ordered = other.partial_cmp(&one);
    ordered.unwrap_or_else(|| one.is_nan().cmp(&other.is_nan()))
}

fn is_ignored(object: &Annotation, range: (f64, f64)) -> bool {
    object.iscrowd != 0.0 || is_outside(object.area, range)
}

fn is_outside(area: f64, (least, most): (f64, f64)) -> bool {
    area < least || area > most
}

/// Matches detections, sorted by score, with objects of their category. Each takes the object with the largest overlap that is not
/// taken; a group of objects can be taken several times.
fn match_objects(
    detections: &[Detection],
    objects: &[&Annotation],
    range: (f64, f64),
    thresholds: &[f64; THRESHOLDS],
) -> Vec<Matches> {
    let outside = |detection: &Detection| {
        if is_outside(detection.area(), range) {
            u16::MAX
        } else {
            0
        }
    };
    let mut ordered = objects.to_vec();
    // Objects that count come first.
    ordered.sort_by_key(|object| is_ignored(object, range));
    let overlaps: Vec<Vec<f64>> = detections
        .iter()
        .map(|detection| ordered.iter().map(|object| overlap(detection, object)).collect())
        .collect();
    let mut matches = vec![Matches::default(); detections.len()];
    for (bit, &threshold) in thresholds.iter().enumerate() {
        let mut is_taken = vec![false; ordered.len()];
        for (overlaps, found) in overlaps.iter().zip(&mut matches) {
            let (mut best, mut chosen) = (threshold.min(1.0 - 1e-10), None);
            for (place, object) in ordered.iter().enumerate() {
                if is_taken[place] && object.iscrowd == 0.0 {
                    continue;
                }
                let has_counting = chosen.is_some_and(|chosen: usize| !is_ignored(ordered[chosen], range));
                if has_counting && is_ignored(object, range) {
                    break;
                }
                // An overlap that is not a number is no reason to go on: the reference takes it.
                if overlaps[place] < best {
                    continue;
                }
                (best, chosen) = (overlaps[place], Some(place));
            }
            if let Some(chosen) = chosen {
                is_taken[chosen] = true;
                let object = ordered[chosen];
                found.ignored |= u16::from(is_ignored(object, range)) << bit;
                found.matched |= u16::from(object.id != 0) << bit;
            }
        }
    }
    for (found, detection) in matches.iter_mut().zip(detections) {
        found.ignored |= outside(detection) & !found.matched;
    }
    matches
}

/// Returns the overlap of two boxes: intersection over union, or over the detection for a group of objects.
fn overlap(detection: &Detection, object: &Annotation) -> f64 {
    let ([left, top, width, height], [other_left, other_top, other_width, other_height]) =
        (detection.bbox, object.bbox);
    let common_width = (width + left).min(other_width + other_left) - left.max(other_left);
    let common_height = (height + top).min(other_height + other_top) - top.max(other_top);
    if common_width <= 0.0 || common_height <= 0.0 {
        return 0.0;
    }
    let common = common_width * common_height;
    let union = if object.iscrowd == 0.0 {
        detection.area() + other_width * other_height - common
    } else {
        detection.area()
    };
    common / union
}

/// Returns `count` numbers from `first` to `last`, with the rounding of `numpy.linspace`.
pub(super) fn linspace<const COUNT: usize>(first: f64, last: f64) -> [f64; COUNT] {
    let step = (last - first) / (COUNT - 1) as f64;
    let mut values = std::array::from_fn(|place| place as f64 * step + first);
    values[COUNT - 1] = last;
    values
}
