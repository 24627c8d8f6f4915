//! A request to load engines.

use std::{path::PathBuf, sync::Arc};

use regatta_types::benchmark::Benchmark;

use super::SequenceBuckets;

/// A request to load engines.
#[derive(Debug)]
pub struct LoadRequest<'a> {
    /// The benchmark. The model's input must match its samples.
    pub benchmark: &'a Benchmark,
    pub model_file: PathBuf,
    /// Width and height of each sample's original image, in the order of the samples, when detections are fractions of them; else empty.
    pub image_sizes: Arc<[[u32; 2]]>,
    /// The voxels of each sample along each dimension, in the order of the samples, when they differ; else empty.
    pub volumes: Arc<[[usize; 3]]>,
    /// The lengths at which sequences are computed, and each sample's.
    pub sequences: Arc<SequenceBuckets>,
    /// Batch sizes that the engine must be fast at, each at least 1; never empty. Other sizes up to the largest work
    /// too. With sliding windows, these are windows.
    pub batch_sizes: &'a [usize],
    /// Whether any batch size is acceptable, so that the engine may choose its own.
    pub takes_any_batch: bool,
    /// Number of engines for the model, at least 1.
    pub streams: usize,
}
