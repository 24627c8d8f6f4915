//! An engine of TensorRT that a run needs and that nobody has built yet. How it is built is decided elsewhere.

use std::path::PathBuf;

use regatta_tensorrt::{CalibrationMethod, InputScale, InputShape, IoFormat, Precision};

/// An engine that must be built before a run can load it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingEngine {
    /// The network.
    pub onnx: PathBuf,
    /// The cache that the run searches.
    pub cache: PathBuf,
    /// How the engine is built for DLA cores. `None` is an engine for GPUs.
    pub dla: Option<MissingDlaEngine>,
    /// The largest batch.
    pub batch: usize,
    /// Optimisation profiles: contexts that run at the same time.
    pub profiles: usize,
    /// Data types in which the engine may compute.
    pub precision: Precision,
    /// The shapes of inputs that the network may leave dynamic, for each length of sequences.
    pub input_shapes: Vec<InputShape>,
    /// Type and layout of the inputs.
    pub input: IoFormat,
    /// The scale of the samples, for an input of 8-bit integers in a network without scales. `None` leaves it to the calibration.
    pub input_scale: Option<InputScale>,
    /// Bytes of the workspace. `None` is TensorRT's own limit.
    pub workspace_bytes: Option<u64>,
    /// TensorRT's level of optimisation. `None` is TensorRT's own.
    pub optimization_level: Option<u8>,
    /// Libraries with plug-ins that the network needs.
    pub plugins: Vec<PathBuf>,
    /// Scales for int8, or samples to find them with.
    pub calibration: Option<PathBuf>,
    /// How scales are found. `None` is the default of `engine build`.
    pub calibration_method: Option<CalibrationMethod>,
}

/// What a missing engine for DLA cores is built with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingDlaEngine {
    /// Bytes of each core's managed SRAM. `None` is the default of `engine build`.
    pub sram_bytes: Option<u64>,
    /// Whether the GPU computes the layers that DLA cannot.
    pub gpu_fallback: bool,
}
