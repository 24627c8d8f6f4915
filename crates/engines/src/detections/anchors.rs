//! RetinaNet's anchors, computed as torchvision's `AnchorGenerator` does: at each cell of a level's grid, three ratios of three sizes.

use std::ops::Range;

use regatta_types::benchmark::DetectionHeads;

/// Ratios of height to width.
const RATIOS: [f32; 3] = [0.5, 1.0, 2.0];
/// Sizes of a level are its base size times a power of 2 with these exponents, cut off.
const OCTAVES: [f64; 3] = [0.0, 1.0 / 3.0, 2.0 / 3.0];

/// The anchors of all levels.
#[derive(Debug, Clone)]
pub(super) struct Anchors {
    /// Left, top, right and bottom in pixels.
    pub(super) boxes: Vec<[f32; 4]>,
    /// The anchors of each level.
    pub(super) levels: Vec<Range<usize>>,
}

impl Anchors {
    pub(super) fn new(settings: &DetectionHeads, height: usize, width: usize) -> Self {
        let mut anchors = Self {
            boxes: Vec::new(),
            levels: Vec::new(),
        };
        for (&stride, &size) in settings.strides.iter().zip(&settings.sizes) {
            let stride = stride.max(1);
            let (rows, columns) = (height.div_ceil(stride).max(1), width.div_ceil(stride).max(1));
            // The distance of cells is cut off: 114 pixels for 7 cells of 800.
            let (down, along) = (height / rows, width / columns);
            let cell = cell(size);
            let first = anchors.boxes.len();
            for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
                let (x, y) = ((column * along) as f32, (row * down) as f32);
                let moved = cell
                    .iter()
                    .map(|[left, top, right, bottom]| [left + x, top + y, right + x, bottom + y]);
                anchors.boxes.extend(moved);
            }
            anchors.levels.push(first..anchors.boxes.len());
        }
        anchors
    }
}

/// Returns the anchors of a cell around 0.
fn cell(size: usize) -> Vec<[f32; 4]> {
    let sizes = OCTAVES.map(|octave| (size as f64 * 2.0_f64.powf(octave)).trunc() as f32);
    let of_ratio = |ratio: f32| {
        let (high, wide) = (ratio.sqrt(), 1.0 / ratio.sqrt());
        sizes.map(|size| {
            let half = |side: f32| (side / 2.0).round_ties_even();
            let (width, height) = (wide * size, high * size);
            [half(-width), half(-height), half(width), half(height)]
        })
    };
    RATIOS.into_iter().flat_map(of_ratio).collect()
}
