//! The TensorRT that is installed on a machine: finds the library by name and reads its version. That needs no shim, because
//! every version has a C function for it.

use std::{
    env,
    error::Error as _,
    fs,
    path::{Path, PathBuf},
};

use libloading::Library;

use crate::{error::TensorRtOpenError, version::Version};

/// Library and parser of each major version, the newest first; then the lean runtimes, which cannot build engines. The
/// dynamic loader searches for names without a directory.
const NAMES: &[(&str, Option<&str>, bool)] = &[
    ("libnvinfer.so.11", Some("libnvonnxparser.so.11"), false),
    ("libnvinfer.so.10", Some("libnvonnxparser.so.10"), false),
    ("libnvinfer.so.8", Some("libnvonnxparser.so.8"), false),
    (
        "libtensorrt_rtx.so.1",
        Some("libtensorrt_onnxparser_rtx.so.1"),
        true,
    ),
    ("libnvinfer_lean.so.11", None, false),
    ("libnvinfer_lean.so.10", None, false),
    ("libnvinfer_lean.so.8", None, false),
];

/// An installed TensorRT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledTensorRt {
    /// The library's path or name for the dynamic loader.
    pub infer: PathBuf,
    /// The ONNX parser's path or name, whose file may be missing. `None` for a lean runtime, which has no parser.
    pub parser: Option<PathBuf>,
    /// The library's version.
    pub version: Version,
}

impl InstalledTensorRt {
    /// Finds TensorRT in `directory`, else in the directory of `REGATTA_TENSORRT`, else the system's newest version.
    ///
    /// # Errors
    /// [`TensorRtOpenError`] when there is none, with the loader's message for each name, or when a file is not TensorRT.
    pub fn find(directory: Option<&Path>) -> Result<Self, TensorRtOpenError> {
        let named = env::var_os("REGATTA_TENSORRT").filter(|value| !value.is_empty());
        let directory = directory.map(Path::to_owned).or(named.map(PathBuf::from));
        let mut tried = Vec::new();
        // The message only lists full libraries: a machine without TensorRT needs one of those.
        let mut missing = |whole: bool, reason: String| tried.extend(whole.then_some(reason));
        for (infer, parser, rtx) in NAMES {
            let place = |name: &str| {
                directory
                    .as_ref()
                    .map_or_else(|| PathBuf::from(name), |d| d.join(name))
            };
            let infer = place(infer);
            if directory.is_some() && fs::metadata(&infer).is_err() {
                missing(parser.is_some(), format!("{} is not there", infer.display()));
                continue;
            }
            match version_of(&infer, *rtx) {
                Ok(version) => {
                    return Ok(Self {
                        infer,
                        parser: parser.map(place),
                        version,
                    });
                }
                // A file in a named directory must load. A name without a directory may just not be installed.
                Err(error) if directory.is_some() => {
                    let reason = loader_message(&error);
                    return Err(TensorRtOpenError::NotTensorRt { path: infer, reason });
                }
                Err(error) => missing(parser.is_some(), loader_message(&error)),
            }
        }
        Err(TensorRtOpenError::NotInstalled(tried))
    }
}

fn version_of(infer: &Path, rtx: bool) -> Result<Version, libloading::Error> {
    // SAFETY: loading runs the library's initialisers; it is NVIDIA's, found under its own name, or the user's choice.
    let library = unsafe { Library::new(infer) }?;
    // SAFETY: every TensorRT has this function with this type (NvInferRuntimeBase.h).
    let version = unsafe { library.get::<extern "C" fn() -> i32>(b"getInferLibVersion") };
    let number = version?();
    Ok(Version::from_library(u32::try_from(number).unwrap_or(0), rtx))
}

/// Returns the dynamic loader's message: the source of libloading's error, which itself only names the call.
fn loader_message(error: &libloading::Error) -> String {
    error
        .source()
        .map_or_else(|| error.to_string(), ToString::to_string)
}
