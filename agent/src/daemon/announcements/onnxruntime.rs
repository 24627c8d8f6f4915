//! The ONNX Runtime that runs open unless they name another, as a hello states it. Opens nothing.

#[cfg(feature = "onnxruntime")]
use regatta_engines::onnxruntime::InstalledOnnxRuntime;

/// Returns the path of the library.
#[cfg(feature = "onnxruntime")]
pub(super) fn library() -> Option<String> {
    let installed = InstalledOnnxRuntime::find(None).ok()?;
    Some(installed.path.display().to_string())
}

/// Returns the version of the library, if the file's name has it.
#[cfg(feature = "onnxruntime")]
pub(super) fn version() -> Option<String> {
    InstalledOnnxRuntime::find(None).ok()?.version
}

#[cfg(not(feature = "onnxruntime"))]
pub(super) const fn library() -> Option<String> {
    None
}

#[cfg(not(feature = "onnxruntime"))]
pub(super) const fn version() -> Option<String> {
    None
}
