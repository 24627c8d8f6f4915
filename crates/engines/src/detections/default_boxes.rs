//! Decodes SSD's outputs: scores of the classes and offsets of the boxes, for each default box.

#[cfg(test)]
mod tests;

use regatta_types::benchmark::{BoxArrangement, ClassScores, DefaultBoxLevel, DetectionDefaultBoxes};

use super::overlap::overlap;
use crate::ModelMismatch;

/// Values of a box.
const BOX: usize = 4;
/// The largest number of classes, of candidates of a class, and of detections.
const MAX: usize = 100_000;
/// The largest number of scores: 30 times those of SSD-ResNet34 on COCO.
const MAX_SCORES: usize = 40_000_000;
/// How far the first, cheap threshold of logits is below the exact one.
const MARGIN: f32 = 1e-3;

/// A default box with a class that may reach the threshold.
#[derive(Debug, Clone, Copy)]
struct BoxCandidate {
    score: f32,
    place: usize,
}

/// A decoded box.
#[derive(Debug, Clone, Copy)]
struct DecodedBox {
    score: f32,
    class: usize,
    place: usize,
    /// Left, top, right and bottom as fractions.
    corners: [f32; BOX],
}

/// The decoder, with its reusable memory.
#[derive(Debug, Clone)]
pub(super) struct DefaultBoxes {
    settings: DetectionDefaultBoxes,
    /// Centre from the left and from the top, width and height, as fractions.
    boxes: Vec<[f32; BOX]>,
    /// The positions of the outputs.
    scores_at: usize,
    offsets_at: usize,
    /// The sum of a box's exponentials, divided by that of its largest score; NaN where it is not computed yet.
    sums: Vec<(f32, f32)>,
    candidates: Vec<BoxCandidate>,
    found: Vec<DecodedBox>,
}

impl DefaultBoxes {
    /// Identifies the outputs by their element counts.
    pub(super) fn new(settings: &DetectionDefaultBoxes, rows: &[usize]) -> Result<Self, ModelMismatch> {
        let count = check(settings)?;
        let (offsets, scores) = (count * BOX, count * settings.classes);
        let at = |numbers: usize| rows.iter().position(|&row| row == numbers);
        let (Some(offsets_at), Some(scores_at)) = (at(offsets), at(scores)) else {
            return Err(format!(
                "its outputs have {rows:?} numbers for a sample, but {count} default boxes need {offsets} for boxes and {scores} for {} \
                 classes",
                settings.classes
            ).into());
        };
        if offsets_at == scores_at {
            return Err("scores of 4 classes cannot be distinguished from boxes".into());
        }
        let boxes: Vec<_> = settings
            .levels
            .iter()
            .flat_map(|level| level_boxes(settings, level))
            .collect();
        Ok(Self {
            settings: settings.clone(),
            sums: vec![(0.0, f32::NAN); boxes.len()],
            boxes,
            scores_at,
            offsets_at,
            candidates: Vec::new(),
            found: Vec::new(),
        })
    }

    /// Passes the detections of a sample to `take`, the best first: top, left, bottom and right as fractions, score, class.
    pub(super) fn decode<'r>(&mut self, row: impl Fn(usize) -> &'r [u8], mut take: impl FnMut(&[f32; 6])) {
        let (scores, offsets) = (
            row(self.scores_at).as_chunks().0,
            row(self.offsets_at).as_chunks().0,
        );
        let settings = &self.settings;
        self.candidates.clear();
        self.found.clear();
        // Without effect after the first sample.
        self.candidates.reserve(self.boxes.len());
        self.found
            .reserve(settings.classes * settings.candidates_per_class.min(self.boxes.len()));
        self.sums.fill((0.0, f32::NAN));
        // The first class is background.
        for class in 1..self.settings.classes {
            self.select(class, scores);
            self.keep_apart(class, offsets);
        }
        self.found.sort_unstable_by(|one, other| {
            let by_score = other.score.total_cmp(&one.score);
            by_score.then((one.class, one.place).cmp(&(other.class, other.place)))
        });
        for found in self.found.iter().take(self.settings.most) {
            let [left, top, right, bottom] = found.corners;
            take(&[top, left, bottom, right, found.score, found.class as f32]);
        }
    }

    /// Selects the default boxes whose score of `class` is above the threshold, the best first.
    fn select(&mut self, class: usize, scores: &[[u8; 4]]) {
        let Self {
            settings,
            boxes,
            sums,
            candidates,
            ..
        } = self;
        let (classes, count) = (settings.classes, boxes.len());
        let logit = |class: usize, place: usize| {
            f32::from_le_bytes(scores[settings.arrangement.at(class, classes, place, count)])
        };
        let threshold = settings.score_threshold;
        let least = (threshold / (1.0 - threshold)).ln() - MARGIN;
        candidates.clear();
        for (place, (largest, sum)) in sums.iter_mut().enumerate() {
            let own = logit(class, place);
            let score = match settings.scores {
                ClassScores::Sigmoid if own > least => 1.0 / (1.0 + (-own).exp()),
                // Beside background alone, no score is above that of a sigmoid.
                ClassScores::Softmax if own - logit(0, place) > least => {
                    if sum.is_nan() {
                        let all = || (0..classes).map(|class| logit(class, place));
                        *largest = all().fold(f32::NEG_INFINITY, f32::max);
                        *sum = all().map(|one| (one - *largest).exp()).sum();
                    }
                    (own - *largest).exp() / *sum
                }
                _ => continue,
            };
            if score > threshold {
                candidates.push(BoxCandidate { score, place });
            }
        }
        candidates.sort_unstable_by(|one, other| {
            let by_score = other.score.total_cmp(&one.score);
            by_score.then(one.place.cmp(&other.place))
        });
        candidates.truncate(settings.candidates_per_class);
    }

    /// Keeps candidates of a class, best first, that do not overlap a kept one.
    fn keep_apart(&mut self, class: usize, offsets: &[[u8; 4]]) {
        let first = self.found.len();
        for number in 0..self.candidates.len() {
            let BoxCandidate { score, place } = self.candidates[number];
            let corners = self.decode_box(place, offsets);
            let is_covered =
                |other: &DecodedBox| overlap(&other.corners, &corners) > self.settings.overlap_threshold;
            if !self.found[first..].iter().any(is_covered) {
                self.found.push(DecodedBox {
                    score,
                    class,
                    place,
                    corners,
                });
            }
        }
    }

    fn decode_box(&self, place: usize, offsets: &[[u8; 4]]) -> [f32; BOX] {
        let Self { settings, boxes, .. } = self;
        let [x, y, width, height] = boxes[place];
        let [centre, size] = settings.variances;
        let offset = |number: usize| {
            let at = settings.arrangement.at(number, BOX, place, boxes.len());
            f32::from_le_bytes(offsets[at])
        };
        let [along, down, wider, higher] = match settings.arrangement {
            BoxArrangement::Channels => [0, 1, 2, 3],
            BoxArrangement::Cells => [1, 0, 3, 2],
        };
        let (x, y) = (
            centre * offset(along) * width + x,
            centre * offset(down) * height + y,
        );
        let half_width = 0.5 * ((size * offset(wider)).exp() * width);
        let half_height = 0.5 * ((size * offset(higher)).exp() * height);
        [x - half_width, y - half_height, x + half_width, y + half_height]
    }
}

/// Returns the default boxes of a level in the order of the outputs.
fn level_boxes(settings: &DetectionDefaultBoxes, level: &DefaultBoxLevel) -> Vec<[f32; BOX]> {
    let centre = |cell: usize| ((cell as f64 + 0.5) / level.cells as f64) as f32;
    let cells = || (0..level.cells).flat_map(|row| (0..level.cells).map(move |column| (row, column)));
    let of = |(row, column): (usize, usize), [width, height]: [f32; 2]| {
        [centre(column), centre(row), width, height]
    };
    match settings.arrangement {
        BoxArrangement::Channels => {
            let sizes = level.sizes.iter();
            sizes
                .flat_map(|&size| cells().map(move |cell| of(cell, size)))
                .collect()
        }
        BoxArrangement::Cells => cells()
            .flat_map(|cell| level.sizes.iter().map(move |&size| of(cell, size)))
            .collect(),
    }
}

/// Checks the settings of a benchmark's file, so that decoding cannot overflow or exhaust the memory. Returns the number of default boxes.
fn check(settings: &DetectionDefaultBoxes) -> Result<usize, ModelMismatch> {
    let wrong = |what: &str| Err(format!("[model.detections] of the benchmark's file: {what}").into());
    let DetectionDefaultBoxes {
        classes,
        levels,
        score_threshold,
        candidates_per_class,
        overlap_threshold,
        most,
        ..
    } = settings;
    if ![*classes, *candidates_per_class, *most]
        .iter()
        .all(|number| (1..=MAX).contains(number))
    {
        return wrong(&format!(
            "`classes`, `candidates_per_class` and `most` must be from 1 to {MAX}"
        ));
    }
    if !(*score_threshold > 0.0 && *score_threshold < 1.0 && (0.0..=1.0).contains(overlap_threshold)) {
        return wrong("thresholds must be between 0 and 1");
    }
    let boxes = |level: &DefaultBoxLevel| {
        level
            .cells
            .saturating_mul(level.cells)
            .saturating_mul(level.sizes.len())
    };
    let count = levels.iter().map(boxes).fold(0, usize::saturating_add);
    if count == 0 || count.saturating_mul(*classes) > MAX_SCORES {
        return wrong(&format!(
            "{count} default boxes of {classes} classes cannot be decoded"
        ));
    }
    Ok(count)
}
