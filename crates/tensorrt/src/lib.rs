//! TensorRT without linking it: one agent serves every JetPack, and hosts without NVIDIA software.
//!
//! [`Installed`] finds the library that a machine has and asks it for its version, [`Shims`] finds the shim that was compiled
//! against that version's headers (`cross/tensorrt`), and [`TensorRt`] opens both. With it engines are built from ONNX
//! ([`BuildSettings`]), inspected, and kept in a [`Cache`] by what they were made of. Running an engine needs CUDA and
//! is not done here.

mod build;
mod cache;
mod error;
mod face;
mod installed;
mod library;
mod placement;
mod shims;
mod version;

pub use build::{BuildSettings, Built, Dla, Phase, Precision};
pub use cache::{Cache, Entry, Listed, Manifest, sha256_of};
pub use error::{BuildError, CacheError, OpenError, Refusal};
pub use installed::Installed;
pub use library::{Engine, Tensor, TensorRt};
pub use placement::{Layer, Placement};
pub use shims::Shims;
pub use version::Version;
