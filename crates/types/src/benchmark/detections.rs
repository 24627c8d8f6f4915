//! How a model's outputs become detections, as a benchmark's file describes it. Decodes nothing.

use serde::{Deserialize, Serialize};

/// How a model's outputs become detections.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outputs", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Detections {
    /// RetinaNet's heads, in torchvision's order: for each anchor the logits of its classes, and 4 offsets of its box.
    Heads(DetectionHeads),
    /// YOLO's predictions since its version 8, boxes first: for all predictions the boxes' centres from the left, then from the top, then
    /// widths, heights, and for each class its scores. Boxes are in pixels of the input.
    Predictions(DetectionPredictions),
    /// Detections of 7 floats that the model has finished, at most `most`, and then their number as a float. NVIDIA's plug-ins for
    /// TensorRT have this output.
    Counted {
        /// The detections for which the output has room.
        most: usize,
    },
}

/// The decoding of RetinaNet's heads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
