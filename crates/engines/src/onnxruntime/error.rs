//! Errors of ONNX Runtime's library and of its calls.

use std::path::PathBuf;

use super::Provider;

/// The version of the interface, which ONNX Runtime 1.17 and later have.
pub(super) const API_VERSION: u32 = 17;

/// What helps when the library is missing or too old. The text is part of a sentence.
const REMEDY: &str = "hint: install it on the device with `python3 -m venv ort && ort/bin/pip install onnxruntime`, and name the directory with --set onnxruntime_library=$PWD/ort or ORT_DYLIB_PATH";

/// Why ONNX Runtime cannot be used on this machine.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// No library was named, and none is installed.
    #[error("ONNX Runtime is not installed; {REMEDY}")]
    NotInstalled,
    /// The named library does not exist.
    #[error("{} neither is nor contains a file libonnxruntime.so; {REMEDY}", path.display())]
    Missing { path: PathBuf },
    /// The dynamic loader rejects the file, or it is another library.
    #[error("{} is not ONNX Runtime's library for this machine: {reason}; {REMEDY}", path.display())]
    NotOnnxRuntime { path: PathBuf, reason: String },
    #[error("{} is ONNX Runtime {version}, but 1.{} or later is needed; {REMEDY}", path.display(), API_VERSION)]
    TooOld { path: PathBuf, version: String },
    /// The library does not start.
    #[error("ONNX Runtime in {} does not start", path.display())]
    Start {
        path: PathBuf,
        #[source]
        source: CallError,
    },
    #[error(
        "ONNX Runtime {version} in {} has no provider {}; it has {available}; hint: NVIDIA's packages of ONNX Runtime for JetPack and the package onnxruntime-gpu have it",
        path.display(), provider.as_str()
    )]
    NoProvider {
        path: PathBuf,
        version: String,
        provider: Provider,
        available: String,
    },
}

/// The message of a failed call.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct CallError(pub(super) String);
