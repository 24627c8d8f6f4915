//! The errors of the crate, by operation. They contain TensorRT's own messages unchanged.

use std::{error::Error, io, path::PathBuf};

use crate::version::Version;

/// The error when TensorRT cannot be opened on this machine.
#[derive(Debug, thiserror::Error)]
pub enum TensorRtOpenError {
    /// No library was found. Contains the reason for each name that was tried.
    #[error(
        "no TensorRT was found ({}); hint: install JetPack's libnvinfer, or name its directory with --tensorrt or REGATTA_TENSORRT",
        .0.join("; ")
    )]
    NotInstalled(Vec<String>),
    /// The library's file is not TensorRT, or is damaged.
    #[error("{} cannot be opened as TensorRT: {reason}", path.display())]
    NotTensorRt {
        /// The library's path.
        path: PathBuf,
        /// The dynamic loader's message.
        reason: String,
    },
    /// There is no shim for the installed version.
    #[error(
        "TensorRT {library} is installed, but there is no shim for it; found are {}; hint: compile one with crates/tensorrt/shim/all.sh and pack it with packaging/package.sh --shims, or name its directory in REGATTA_PLUGINS",
        if found.is_empty() { "none".to_owned() } else { found.join(", ") }
    )]
    NoShim {
        /// The installed version.
        library: Version,
        /// The versions of the shims that were found.
        found: Vec<String>,
    },
    /// The shim has another ABI than this crate.
    #[error("the shim {} has ABI {found}, but this agent needs ABI {expected}; hint: install the shim that was packed with the agent", path.display())]
    ShimAbi {
        /// The shim's path.
        path: PathBuf,
        /// The shim's ABI.
        found: u32,
        /// The ABI of this crate.
        expected: u32,
    },
    /// The shim cannot be loaded.
    #[error("the shim {} cannot be loaded", path.display())]
    Shim {
        /// The shim's path.
        path: PathBuf,
        /// The cause.
        #[source]
        source: libloading::Error,
    },
    /// The shim could not open TensorRT.
    #[error("TensorRT {version} cannot be opened: {reason}")]
    Library {
        /// The installed version.
        version: Version,
        /// The shim's message.
        reason: String,
    },
    /// A directory of shims cannot be read.
    #[error("the directory {} cannot be read", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

/// The error when an engine cannot be built, or cannot be loaded on this machine.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// TensorRT cannot use the ONNX file.
    #[error("TensorRT rejects the model: {0}")]
    Model(String),
    /// The build failed.
    #[error("TensorRT did not build the engine: {0}")]
    Build(String),
    /// The plan cannot be loaded on this machine.
    #[error("TensorRT does not load the plan: {0}")]
    Plan(String),
    /// This version or chip does not have a requested feature.
    #[error("{0}")]
    Unsupported(String),
    /// GPU fallback is not allowed, and DLA cannot run some layers.
    #[error("without GPU fallback the network cannot run on DLA: {} of {layers} layers cannot ({})", on_gpu.len(), on_gpu.join(", "))]
    Fallback {
        /// The layers that DLA cannot run.
        on_gpu: Vec<String>,
        /// The number of layers in the network.
        layers: usize,
    },
    /// The calibrator could not provide its samples.
    #[error("the calibration failed")]
    Calibration(#[source] Box<dyn Error + Send + Sync>),
    /// The user cancelled the build.
    #[error("the build was cancelled")]
    Cancelled,
}

/// The error when a model's files cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The ONNX file cannot be read.
    #[error("the model {} cannot be read", path.display())]
    Model {
        /// The ONNX file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The model names a file outside of its directory, which ONNX forbids.
    #[error("the model {} has weights in {weights}, outside its directory", path.display())]
    Outside {
        /// The ONNX file.
        path: PathBuf,
        /// The file that it names.
        weights: String,
    },
    /// A file of weights cannot be read.
    #[error("the model {} has weights in {}, which cannot be read", path.display(), weights.display())]
    Weights {
        /// The ONNX file.
        path: PathBuf,
        /// The file of weights.
        weights: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

/// The error when TensorRT cannot execute an engine. Contains TensorRT's message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("TensorRT failed to execute the engine: {0}")]
pub struct ExecutionError(pub String);

/// The error when the engine cache cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// A file cannot be read or written.
    #[error("the file {} of the engine cache cannot be used", path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// An engine is not in the cache.
    #[error("{} has no engine {key}; hint: `engine list` shows its engines", cache.display())]
    NoEngine {
        key: String,
        /// The directory of the cache.
        cache: PathBuf,
    },
    /// A file is not an engine's manifest.
    #[error("{} is not the manifest of an engine", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: serde_json::Error,
    },
    /// The engine in a directory was built with other settings, or from another model, than the directory's name says.
    #[error("{} has an engine with another manifest", directory.display())]
    OtherManifest {
        /// The engine's directory.
        directory: PathBuf,
    },
    /// A plan's SHA-256 differs from its manifest.
    #[error("{} was changed after it was built: its SHA-256 differs from the manifest's", path.display())]
    Changed {
        /// The plan's file.
        path: PathBuf,
    },
}

/// The reason why a cached engine cannot be used: it was built for another chip or TensorRT version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the engine was built for another {field}: {built}, but here it is {here}; hint: build it again")]
pub struct EngineMismatch {
    /// The first field that differs.
    pub field: &'static str,
    /// The field's value in the manifest.
    pub built: String,
    /// The field's value on this machine.
    pub here: String,
}
