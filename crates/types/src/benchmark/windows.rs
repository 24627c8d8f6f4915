//! How a model sees a volume in overlapping windows, as a benchmark's file describes it. Computes nothing.

use serde::{Deserialize, Serialize};

/// The windows of a model over a volume of any size. The outputs of windows are added with a Gaussian as their weight, and divided by the
/// sum of weights; the largest class of a voxel is the answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SlidingWindows {
    /// The distance between the beginnings of two windows, in voxels, along each dimension after the channels.
    pub stride: [usize; 3],
    /// The standard deviation of the Gaussian, as a fraction of a window's side. Windows are cubes.
    pub deviation: f64,
    /// The number of classes.
    pub classes: usize,
}
