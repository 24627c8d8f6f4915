//! Decodes RetinaNet's heads: logits of the classes and offsets of the boxes, for each anchor.

use std::ops::Range;

use regatta_types::benchmark::DetectionHeads;

use super::{anchors::Anchors, overlap::overlap};
use crate::ModelMismatch;

/// The natural logarithm of 1000 / 16, the largest growth of an anchor's side.
const MAX_GROWTH: f32 = 4.135_166_6;
/// How far the first, cheap threshold of logits is below the exact one.
const MARGIN: f32 = 1e-3;

/// The largest number of classes, of candidates of a level, and of detections.
const MAX: usize = 100_000;
/// The largest number of cells times classes: 10 times those of RetinaNet on OpenImages.
const MAX_LOGITS: usize = 40_000_000;

/// A class of an anchor.
#[derive(Debug, Clone, Copy)]
struct AnchorCandidate {
    logit: f32,
    /// Its position among the logits.
    place: usize,
}

/// A decoded box.
#[derive(Debug, Clone, Copy)]
struct DecodedAnchor {
    candidate: AnchorCandidate,
    score: f32,
    class: usize,
    /// Left, top, right and bottom in pixels.
    corners: [f32; 4],
}

/// The decoder, with its reusable memory.
#[derive(Debug, Clone)]
pub(super) struct Heads {
    settings: DetectionHeads,
    height: f32,
    width: f32,
    anchors: Anchors,
    /// The positions of the outputs.
    scores_at: usize,
    boxes_at: usize,
    candidates: Vec<AnchorCandidate>,
    found: Vec<DecodedAnchor>,
    kept: Vec<DecodedAnchor>,
}

impl Heads {
    /// Identifies the outputs by their element counts.
    pub(super) fn new(
        settings: &DetectionHeads,
        input: &[usize],
        rows: &[usize],
    ) -> Result<Self, ModelMismatch> {
        let &[_, height, width] = input else {
            return Err(format!("heads are decoded for images of 3 dimensions, not for {input:?}").into());
        };
        check(settings, height, width)?;
        let anchors = Anchors::new(settings, height, width);
        let count = anchors.boxes.len();
        let (boxes, scores) = (count * 4, count * settings.classes);
        let at = |numbers: usize| rows.iter().position(|&row| row == numbers);
        let (Some(boxes_at), Some(scores_at)) = (at(boxes), at(scores)) else {
            return Err(format!(
                "its outputs have {rows:?} numbers for a sample, but {count} anchors need {boxes} for boxes and {scores} for {} classes",
                settings.classes
            ).into());
        };
        if boxes_at == scores_at {
            return Err("heads of 4 classes cannot be distinguished from their boxes".into());
        }
        Ok(Self {
            settings: settings.clone(),
            height: height as f32,
            width: width as f32,
            anchors,
            scores_at,
            boxes_at,
            candidates: Vec::new(),
            found: Vec::new(),
            kept: Vec::new(),
        })
    }

    /// Passes the detections of a sample to `take`, the best first: top, left, bottom and right as fractions, score, class.
    pub(super) fn decode<'r>(&mut self, row: impl Fn(usize) -> &'r [u8], mut take: impl FnMut(&[f32; 6])) {
        let (scores, boxes) = (
            row(self.scores_at).as_chunks().0,
            row(self.boxes_at).as_chunks().0,
        );
        let (levels, settings) = (self.anchors.levels.len(), &self.settings);
        self.found.clear();
        self.kept.clear();
        // Without effect after the first sample.
        self.found.reserve(levels * settings.candidates_per_level);
        self.kept.reserve(settings.most);
        for level in 0..self.anchors.levels.len() {
            self.select(self.anchors.levels[level].clone(), scores);
            for place in 0..self.candidates.len() {
                let found = self.decode_box(self.candidates[place], boxes);
                if found.score > self.settings.score_threshold {
                    self.found.push(found);
                }
            }
        }
        self.found
            .sort_unstable_by(|one, other| best_first(&one.candidate, &other.candidate));
        self.suppress();
        for found in &self.kept {
            let [left, top, right, bottom] = found.corners;
            let (height, width) = (self.height, self.width);
            take(&[
                top / height,
                left / width,
                bottom / height,
                right / width,
                found.score,
                found.class as f32,
            ]);
        }
    }

    /// Selects the candidates of a level with the highest logits.
    fn select(&mut self, level: Range<usize>, scores: &[[u8; 4]]) {
        let Self {
            settings, candidates, ..
        } = self;
        let most = settings.candidates_per_level;
        let threshold = settings.score_threshold;
        let mut least = (threshold / (1.0 - threshold)).ln() - MARGIN;
        candidates.clear();
        candidates.reserve(2 * most);
        let first = level.start * settings.classes;
        for (place, bytes) in (first..).zip(&scores[first..level.end * settings.classes]) {
            let logit = f32::from_le_bytes(*bytes);
            if logit > least {
                candidates.push(AnchorCandidate { logit, place });
                if candidates.len() == 2 * most {
                    least = keep_best(candidates, most);
                }
            }
        }
        if candidates.len() > most {
            keep_best(candidates, most);
        }
    }

    /// Decodes the box of a candidate and clips it to the image.
    fn decode_box(&self, candidate: AnchorCandidate, boxes: &[[u8; 4]]) -> DecodedAnchor {
        let anchor = candidate.place / self.settings.classes;
        let [left, top, right, bottom] = self.anchors.boxes[anchor];
        let offset = |number: usize| f32::from_le_bytes(boxes[anchor * 4 + number]);
        let (width, height) = (right - left, bottom - top);
        let centre_x = offset(0) * width + (left + 0.5 * width);
        let centre_y = offset(1) * height + (top + 0.5 * height);
        // `clamp` keeps NaN, as torch does.
        let growth = |number: usize| offset(number).clamp(f32::NEG_INFINITY, MAX_GROWTH).exp();
        let half_width = 0.5 * (growth(2) * width);
        let half_height = 0.5 * (growth(3) * height);
        let (x, y) = (
            |x: f32| x.clamp(0.0, self.width),
            |y: f32| y.clamp(0.0, self.height),
        );
        DecodedAnchor {
            candidate,
            score: 1.0 / (1.0 + (-candidate.logit).exp()),
            class: candidate.place % self.settings.classes,
            corners: [
                x(centre_x - half_width),
                y(centre_y - half_height),
                x(centre_x + half_width),
                y(centre_y + half_height),
            ],
        }
    }

    /// Keeps boxes, best first, that do not overlap a kept box of their class.
    fn suppress(&mut self) {
        let Self {
            settings,
            found,
            kept,
            ..
        } = self;
        kept.clear();
        for one in found.iter() {
            if kept.len() == settings.most {
                break;
            }
            let is_covered = |other: &DecodedAnchor| {
                other.class == one.class && overlap(&other.corners, &one.corners) > settings.overlap_threshold
            };
            if !kept.iter().any(is_covered) {
                kept.push(*one);
            }
        }
    }
}

/// Checks the settings of a benchmark's file, so that decoding cannot overflow or exhaust the memory.
fn check(settings: &DetectionHeads, height: usize, width: usize) -> Result<(), ModelMismatch> {
    let wrong = |what: &str| Err(format!("[model.detections] of the benchmark's file: {what}").into());
    let DetectionHeads {
        classes,
        strides,
        sizes,
        score_threshold,
        candidates_per_level,
        overlap_threshold,
        most,
    } = settings;
    if ![*classes, *candidates_per_level, *most]
        .iter()
        .all(|number| (1..=MAX).contains(number))
    {
        return wrong(&format!(
            "`classes`, `candidates_per_level` and `most` must be from 1 to {MAX}"
        ));
    }
    if !(*score_threshold > 0.0 && *score_threshold < 1.0 && (0.0..=1.0).contains(overlap_threshold)) {
        return wrong("thresholds must be between 0 and 1");
    }
    if strides.len() != sizes.len() || strides.is_empty() || strides.contains(&0) {
        return wrong("each level has one of `strides`, above 0, and one of `sizes`");
    }
    let cells = |stride: &usize| height.div_ceil(*stride).saturating_mul(width.div_ceil(*stride));
    let cells = strides.iter().map(cells).fold(0, usize::saturating_add);
    if cells.saturating_mul(*classes) > MAX_LOGITS {
        return wrong(&format!(
            "{cells} cells of {classes} classes are more than can be decoded"
        ));
    }
    Ok(())
}

/// The highest logit first, and the first of equal ones.
fn best_first(one: &AnchorCandidate, other: &AnchorCandidate) -> std::cmp::Ordering {
    other
        .logit
        .total_cmp(&one.logit)
        .then(one.place.cmp(&other.place))
}

/// Keeps the best `most` candidates in any order, and returns the lowest of their logits.
fn keep_best(candidates: &mut Vec<AnchorCandidate>, most: usize) -> f32 {
    let (_, last, _) = candidates.select_nth_unstable_by(most - 1, best_first);
    let least = last.logit;
    candidates.truncate(most);
    least
}
