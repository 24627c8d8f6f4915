//! What the harness asks of an engine when it loads one.

use std::path::PathBuf;

use regatta_types::{benchmark::Benchmark, documents::EngineKind};

use super::{sim::SimModel, tensorrt::EngineRequest};

/// What is asked of an engine.
#[derive(Debug)]
pub(crate) struct LoadRequest<'a> {
    /// Which engine.
    pub(crate) kind: EngineKind,
    /// The benchmark, whose samples the model's input must fit.
    pub(crate) benchmark: &'a Benchmark,
    /// The model's file.
    pub(crate) model_file: PathBuf,
    /// The batch sizes to be quick at, each at least 1; never empty. Other sizes up to the largest work as well.
    pub(crate) batch_sizes: &'a [usize],
    /// Whether the user asked for the largest of these sizes by name, so that a smaller one is no substitute.
    #[cfg_attr(
        not(feature = "tract"),
        expect(dead_code, reason = "TensorRT's wish has each unit's own batch")
    )]
    pub(crate) batch_size_is_request: bool,
    /// Whether batches of any size serve the run as well, so that an engine may set its own.
    pub(crate) takes_any_batch: bool,
    /// How many engines over the same model are wanted, at least 1.
    pub(crate) streams: usize,
    /// The modelled accelerator, read by `sim` alone.
    pub(crate) sim: &'a SimModel,
    /// What is asked of the units, read by `tensorrt` alone.
    pub(crate) tensorrt: &'a EngineRequest,
}
