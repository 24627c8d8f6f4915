//! TensorRT without linking it: one agent serves every JetPack, and hosts without NVIDIA software.
//!
//! [`Installed`] finds the library that a machine has and asks it for its version, [`Shims`] finds the shim that was compiled
//! against that version's headers (`cross/tensorrt`), and [`TensorRt`] opens both. With it engines are built from ONNX
//! ([`BuildSettings`]), inspected, kept in a [`Cache`] by what they were made of, and run ([`Context`]) over streams and memory
//! that the caller has from CUDA.

mod build;
mod cache;
mod calibration;
mod context;
mod engine;
mod error;
mod face;
mod installed;
mod io;
mod library;
mod model;
mod onnx;
mod placement;
mod shims;
mod version;

pub use build::{BuildSettings, Built, Dla, Phase, Precision};
pub use cache::{Cache, Entry, Listed, Manifest, sha256_of};
pub use calibration::{Calibration, CalibrationInput};
pub use context::Context;
pub use engine::{Engine, Tensor};
pub use error::{BuildError, CacheError, ModelError, OpenError, Refusal, RunError};
pub use installed::Installed;
pub use io::{InputShape, Io, IoType};
pub use library::TensorRt;
pub use model::Model;
pub use placement::{Layer, Placement};
pub use shims::Shims;
pub use version::Version;
