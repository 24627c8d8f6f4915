//! TensorRT, opened at run time instead of linked: one agent binary works with every JetPack, and on hosts without NVIDIA
//! software.
//!
//! [`InstalledTensorRt`] finds the machine's library and reads its version. [`ShimDirectories`] finds the shim that was
//! compiled with that version's headers (`crates/tensorrt/shim`), and [`TensorRt`] opens both. Engines are then built from ONNX
//! ([`BuildSettings`]), stored in an [`EngineCache`] by their manifest, and executed in an [`ExecutionContext`]. The caller
//! provides CUDA streams and memory.

mod build;
mod calibration_method;
mod calibrator;
mod engine;
mod engine_cache;
mod error;
mod execution_context;
mod ffi;
mod input_scale;
mod installed_tensorrt;
mod io_format;
mod library;
mod lock;
mod model;
mod onnx;
mod placement;
mod plugin_library;
mod shim_directories;
mod version;

pub use build::{BuildOutput, BuildPhase, BuildSettings, DlaSettings, Precision};
pub use calibration_method::CalibrationMethod;
pub use calibrator::{CalibrationInput, Calibrator};
pub use engine::{Engine, Tensor};
pub use engine_cache::{CacheEntry, CacheListing, EngineCache, EngineManifest};
pub use error::{BuildError, CacheError, EngineMismatch, ExecutionError, ModelError, TensorRtOpenError};
pub use execution_context::ExecutionContext;
pub use input_scale::{InputScale, Scale};
pub use installed_tensorrt::InstalledTensorRt;
pub use io_format::{ElementType, InputShape, IoFormat};
pub use library::TensorRt;
pub use model::Model;
pub use placement::{Layer, Placement};
pub use plugin_library::{PluginLibraryError, plugin_hashes};
pub use shim_directories::ShimDirectories;
pub use version::Version;
