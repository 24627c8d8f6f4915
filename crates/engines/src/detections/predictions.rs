//! Decodes YOLO's predictions as the reference's `predict` does: the best class of each box, suppression of overlapping boxes of one class,
//! and boxes as fractions of the original image.

use regatta_types::benchmark::DetectionPredictions;

use super::overlap::overlap;
use crate::ModelMismatch;

/// Boxes of one class are moved this far from those of the class before, in pixels. 32-bit floats then round overlaps as the reference does.
const CLASS_DISTANCE: f32 = 7680.0;
/// Values of a box.
const BOX: usize = 4;
/// The largest number of classes, and of detections.
const MAX: usize = 100_000;
/// The largest number of scores: 50 times those of YOLO11 on COCO.
const MAX_SCORES: usize = 40_000_000;

/// A prediction above the threshold.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    score: f32,
    class: u16,
    /// Its position among the predictions.
    place: usize,
    /// Left, top, right and bottom in pixels of the input.
    corners: [f32; BOX],
    /// The corners, moved by its class.
    moved: [f32; BOX],
}

/// The decoder, with its reusable memory.
#[derive(Debug, Clone)]
pub(super) struct Predictions {
    settings: DetectionPredictions,
    /// Width and height of the input in pixels.
    input: [f64; 2],
    count: usize,
    /// The position of the output.
    output: usize,
    /// For each prediction, its best score and class.
    best: Vec<(f32, u16)>,
    candidates: Vec<Candidate>,
    kept: Vec<Candidate>,
}

impl Predictions {
    /// Identifies the output by its element count.
    pub(super) fn new(
        settings: &DetectionPredictions,
        input: &[usize],
        rows: &[usize],
    ) -> Result<Self, ModelMismatch> {
        let &[_, height, width] = input else {
            return Err(
                format!("predictions are decoded for images of 3 dimensions, not for {input:?}").into(),
            );
        };
        let count = check(settings, height, width)?;
        let classes = settings.categories.len();
        let numbers = count * (BOX + classes);
        let output = rows.iter().position(|&row| row == numbers).ok_or_else(|| {
            format!(
                "its outputs have {rows:?} numbers for a sample, but {count} predictions of {BOX} coordinates and {classes} classes have \
                 {numbers}; hint: export the network for {width} x {height} pixels and without suppression (`nms=False`)"
            )
        })?;
        Ok(Self {
            settings: settings.clone(),
            input: [width as f64, height as f64],
            count,
            output,
            best: Vec::new(),
            candidates: Vec::new(),
            kept: Vec::new(),
        })
    }

    /// Passes the detections of a sample to `take`, the best first: top, left, bottom and right as fractions, score, category.
    /// `size` is the original image's width and height; `None` for that of the input.
    pub(super) fn decode<'r>(
        &mut self,
        row: impl Fn(usize) -> &'r [u8],
        size: Option<[u32; 2]>,
        mut take: impl FnMut(&[f32; 6]),
    ) {
        let (numbers, _) = row(self.output).as_chunks();
        self.select(numbers);
        self.suppress();
        let size = size.map_or(self.input, |size| size.map(f64::from));
        let frame = Frame::new(self.input, size);
        for found in &self.kept {
            let [left, top, right, bottom] = frame.fractions(found.corners);
            let category = self.settings.categories[usize::from(found.class)];
            take(&[top, left, bottom, right, found.score, f32::from(category)]);
        }
    }

    /// Selects the predictions above the threshold, the best first, and the first of equal ones.
    fn select(&mut self, numbers: &[[u8; 4]]) {
        let Self {
            settings,
            best,
            candidates,
            count,
            ..
        } = self;
        let value = |number: usize| f32::from_le_bytes(numbers[number]);
        let scores = |class: usize| &numbers[(BOX + class) * *count..][..*count];
        best.clear();
        best.extend(scores(0).iter().map(|bytes| (f32::from_le_bytes(*bytes), 0)));
        for class in 1..settings.categories.len() {
            for (best, bytes) in best.iter_mut().zip(scores(class)) {
                let score = f32::from_le_bytes(*bytes);
                if score > best.0 {
                    *best = (score, class as u16);
                }
            }
        }
        candidates.clear();
        // Without effect after the first sample.
        candidates.reserve(*count);
        for (place, &(score, class)) in best.iter().enumerate() {
            if score > settings.score_threshold {
                let [x, y, width, height] = [0, 1, 2, 3].map(|part| value(part * *count + place));
                let (width, height) = (width / 2.0, height / 2.0);
                let corners = [x - width, y - height, x + width, y + height];
                let distance = f32::from(class) * CLASS_DISTANCE;
                candidates.push(Candidate {
                    score,
                    class,
                    place,
                    corners,
                    moved: corners.map(|corner| corner + distance),
                });
            }
        }
        candidates.sort_unstable_by(|one, other| {
            let by_score = other.score.total_cmp(&one.score);
            by_score.then(one.place.cmp(&other.place))
        });
    }

    /// Keeps candidates, best first, that do not overlap a kept one of their class.
    fn suppress(&mut self) {
        let Self {
            settings,
            candidates,
            kept,
            ..
        } = self;
        kept.clear();
        kept.reserve(settings.most);
        for one in candidates.iter() {
            if kept.len() == settings.most {
                break;
            }
            let is_covered = |other: &Candidate| {
                other.class == one.class && overlap(&other.moved, &one.moved) > settings.overlap_threshold
            };
            if !kept.iter().any(is_covered) {
                kept.push(*one);
            }
        }
    }
}

/// The place of an original image in the input.
#[derive(Debug, Clone, Copy)]
struct Frame {
    /// Pixels of the input for one of the image.
    gain: f32,
    left: f32,
    top: f32,
    width: f32,
    height: f32,
}

impl Frame {
    fn new([input_width, input_height]: [f64; 2], [width, height]: [f64; 2]) -> Self {
        let gain = (input_height / height).min(input_width / width);
        // As the reference: not from the resized image's whole pixels.
        let padding = |input: f64, side: f64| ((input - side * gain) / 2.0 - 0.1).round_ties_even() as f32;
        Self {
            gain: gain as f32,
            left: padding(input_width, width),
            top: padding(input_height, height),
            width: width as f32,
            height: height as f32,
        }
    }

    /// Returns corners in pixels of the input as fractions of the image, clipped to it.
    fn fractions(&self, [left, top, right, bottom]: [f32; BOX]) -> [f32; BOX] {
        let x = |x: f32| ((x - self.left) / self.gain).clamp(0.0, self.width) / self.width;
        let y = |y: f32| ((y - self.top) / self.gain).clamp(0.0, self.height) / self.height;
        [x(left), y(top), x(right), y(bottom)]
    }
}

/// Checks the settings of a benchmark's file, so that decoding cannot overflow or exhaust the memory. Returns the number of predictions.
fn check(settings: &DetectionPredictions, height: usize, width: usize) -> Result<usize, ModelMismatch> {
    let wrong = |what: &str| Err(format!("[model.detections] of the benchmark's file: {what}").into());
    let DetectionPredictions {
        categories,
        strides,
        score_threshold,
        overlap_threshold,
        most,
    } = settings;
    if !(1..=usize::from(u16::MAX)).contains(&categories.len()) || !(1..=MAX).contains(most) {
        return wrong(&format!(
            "`categories` must have from 1 to {} numbers, and `most` must be from 1 to {MAX}",
            u16::MAX
        ));
    }
    if !(*score_threshold > 0.0 && *score_threshold < 1.0 && (0.0..=1.0).contains(overlap_threshold)) {
        return wrong("thresholds must be between 0 and 1");
    }
    if strides.is_empty() || strides.contains(&0) {
        return wrong("`strides` must be above 0");
    }
    let cells = |stride: &usize| height.div_ceil(*stride).saturating_mul(width.div_ceil(*stride));
    let count = strides.iter().map(cells).fold(0, usize::saturating_add);
    if count == 0 || count.saturating_mul(BOX + categories.len()) > MAX_SCORES {
        return wrong(&format!(
            "{count} predictions of {} classes cannot be decoded",
            categories.len()
        ));
    }
    Ok(count)
}
