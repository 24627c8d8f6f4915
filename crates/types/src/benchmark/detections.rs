//! How a model's outputs become detections, as a benchmark's file describes it. Decodes nothing.

use serde::{Deserialize, Serialize};

use super::tagged::read_by_value;

/// How a model's outputs become detections.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(
    remote = "Self",
    tag = "outputs",
    rename_all = "kebab-case",
    deny_unknown_fields
)]
pub enum Detections {
    /// RetinaNet's heads, in torchvision's order: for each anchor the logits of its classes, and 4 offsets of its box.
    Heads(DetectionHeads),
    /// YOLO's predictions since its version 8, boxes first: for all predictions the boxes' centres from the left, then from the top, then
    /// widths, heights, and for each class its scores. Boxes are in pixels of the input.
    Predictions(DetectionPredictions),
    /// SSD's outputs: for each default box the scores of its classes, and 4 offsets.
    DefaultBoxes(DetectionDefaultBoxes),
    /// Detections of 7 floats that the model has finished, at most `most`, and then their number as a float. NVIDIA's plug-ins for
    /// TensorRT have this output.
    Counted {
        /// The maximum number of detections in the output.
        most: usize,
    },
}

read_by_value!(Detections);

/// The decoding of RetinaNet's heads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DetectionHeads {
    /// The number of classes.
    pub classes: usize,
    /// Pixels between the cells of each level's grid, the finest first.
    pub strides: Vec<usize>,
    /// The smallest size of each level's anchors, in pixels. Each cell has 9 anchors: 3 ratios of 3 sizes.
    pub sizes: Vec<usize>,
    /// Detections have a higher score.
    pub score_threshold: f32,
    /// The most candidates of a level, by score.
    pub candidates_per_level: usize,
    /// The largest intersection over union of two boxes of one class.
    pub overlap_threshold: f32,
    /// The most detections of a sample, by score.
    pub most: usize,
}

/// The decoding of YOLO's predictions. Boxes are fractions of the original image, whose size is in the map.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DetectionPredictions {
    /// For each class of the model, the category in the annotations.
    pub categories: Vec<u16>,
    /// Pixels between the cells of each level's grid. Each cell has one prediction.
    pub strides: Vec<usize>,
    /// Detections have a higher score.
    pub score_threshold: f32,
    /// The largest intersection over union of two boxes of one class.
    pub overlap_threshold: f32,
    /// The most detections of a sample, by score.
    pub most: usize,
}

/// The decoding of SSD's outputs. Boxes are fractions of the image, which is resized to the input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DetectionDefaultBoxes {
    /// The number of classes. The first is background.
    pub classes: usize,
    /// How scores become probabilities.
    pub scores: ClassScores,
    /// The order of the outputs.
    pub arrangement: BoxArrangement,
    /// Factors of the offsets: of the centre, and of width and height.
    pub variances: [f32; 2],
    /// Detections have a higher score.
    pub score_threshold: f32,
    /// The most candidates of a class, by score.
    pub candidates_per_class: usize,
    /// The largest intersection over union of two boxes of one class.
    pub overlap_threshold: f32,
    /// The most detections of a sample, by score.
    pub most: usize,
    /// The default boxes of each level, the finest first.
    pub levels: Vec<DefaultBoxLevel>,
}

/// The default boxes of a level: at the centre of each cell, one of each size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DefaultBoxLevel {
    /// The cells along each side.
    pub cells: usize,
    /// Widths and heights, as fractions of the image.
    pub sizes: Vec<[f32; 2]>,
}

/// How a model's scores become probabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ClassScores {
    /// Each by itself.
    Sigmoid,
    /// The scores of a box together.
    Softmax,
}

/// The order of the numbers of default boxes in a model's outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum BoxArrangement {
    /// Box by box, those of a cell together. Offsets are from the top, from the left, of height and of width, as TensorFlow has them.
    Cells,
    /// Number by number, each for all boxes, those of one size together. Offsets are from the left, from the top, of width and of height,
    /// as PyTorch's convolutions leave them.
    Channels,
}

impl BoxArrangement {
    /// Returns the position of a number of a box: number `number` of `numbers` of box `place` of `count`.
    #[must_use]
    pub const fn at(self, number: usize, numbers: usize, place: usize, count: usize) -> usize {
        match self {
            Self::Cells => place * numbers + number,
            Self::Channels => number * count + place,
        }
    }
}
