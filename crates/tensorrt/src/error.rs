//! What can go wrong, by layer. TensorRT's own words are kept as they came.

use std::{io, path::PathBuf};

use crate::version::Version;

/// TensorRT cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// No library on this machine.
    #[error(
        "no TensorRT was found ({}); install JetPack's libnvinfer, or name the directory with --tensorrt or REGATTA_TENSORRT",
        .0.join("; ")
    )]
    NotInstalled(Vec<String>),
    /// A library that is not what its name says, or is broken.
    #[error("{} is no TensorRT that can be opened: {reason}", path.display())]
    NotTensorRt {
        /// Which file.
        path: PathBuf,
        /// The loader's words.
        reason: String,
    },
    /// No shim for this version.
    #[error(
        "TensorRT {library} is installed, but there is no shim for it; found are {}; cross/tensorrt/all.sh makes one that cross/package.sh --shims packs with the agent; or name its directory in REGATTA_PLUGINS",
        if found.is_empty() { "none".to_owned() } else { found.join(", ") }
    )]
    NoShim {
        /// The installed version.
        library: Version,
        /// Versions for which shims were found.
        found: Vec<String>,
    },
    /// A shim of another age.
    #[error("the shim {} has ABI {given}, but this agent speaks {expected}: install the one that came with it", path.display())]
    ShimAbi {
        /// Which file.
        path: PathBuf,
        /// Its ABI.
        given: u32,
        /// Ours.
        expected: u32,
    },
    /// The shim cannot be loaded.
    #[error("the shim {} cannot be loaded", path.display())]
    Shim {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: libloading::Error,
    },
    /// The shim could not open TensorRT.
    #[error("TensorRT {version} cannot be opened: {reason}")]
    Library {
        /// The installed version.
        version: Version,
        /// Its words.
        reason: String,
    },
    /// A directory cannot be read.
    #[error("cannot look into {}", path.display())]
    Directory {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// An engine was not built, or is not one for this machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// The ONNX file does not do.
    #[error("TensorRT does not take the model: {0}")]
    Model(String),
    /// TensorRT failed.
    #[error("TensorRT did not build the engine: {0}")]
    Build(String),
    /// The plan is not for this machine.
    #[error("TensorRT does not load the plan: {0}")]
    Plan(String),
    /// This version or chip has no such thing.
    #[error("{0}")]
    Unsupported(String),
    /// Some layers would run on the GPU although that was forbidden.
    #[error("without GPU fallback the network cannot run on DLA: {} of {layers} layers cannot ({})", on_gpu.len(), on_gpu.join(", "))]
    Fallback {
        /// Layers that DLA cannot run.
        on_gpu: Vec<String>,
        /// Layers in all.
        layers: usize,
    },
    /// Samples for calibrating could not be had.
    #[error("the calibration failed: {0}")]
    Calibration(String),
    /// The user stopped it.
    #[error("the build was cancelled")]
    Cancelled,
}

/// A model's files cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The ONNX file.
    #[error("the model {} cannot be read", path.display())]
    Model {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It names a file that is not beside or below it, which ONNX forbids.
    #[error("the model {} has weights in {weights}, outside of its own directory", path.display())]
    Outside {
        /// Which model.
        path: PathBuf,
        /// What it names.
        weights: String,
    },
    /// A file that it names.
    #[error("the model {} has weights in {}, which cannot be read", path.display(), weights.display())]
    Weights {
        /// Which model.
        path: PathBuf,
        /// Which file of it.
        weights: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// TensorRT does not run an engine, in its own words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("TensorRT does not run the engine: {0}")]
pub struct RunError(pub String);

/// The engine cache cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// A file cannot be read or written.
    #[error("cannot use {}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A manifest is none.
    #[error("{} is no manifest of an engine", path.display())]
    Manifest {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// The plan is not the one of its manifest.
    #[error("{} was changed after it was built: its SHA-256 is not the manifest's", path.display())]
    Changed {
        /// Which.
        path: PathBuf,
    },
}

/// A cached engine is from another board, version or model: the first field that differs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the engine was built for another {field}: {built}, but here it is {here}; build it again")]
pub struct Refusal {
    /// The field.
    pub field: &'static str,
    /// Its value in the manifest.
    pub built: String,
    /// Its value here.
    pub here: String,
}
