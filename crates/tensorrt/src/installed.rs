//! Which TensorRT a machine has: found by name, asked for its version. No shim is needed for that: the question is a
//! C function that every version has.

use std::{
    env,
    error::Error as _,
    fs,
    path::{Path, PathBuf},
};

use libloading::Library;

use crate::{error::OpenError, version::Version};

/// Library and parser by version family, the newest first; then the lean runtimes, which build nothing. Bare names go through
/// the system's own search.
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
pub struct Installed {
    /// The library, as the loader is to be asked for it.
    pub infer: PathBuf,
    /// Its ONNX parser, which may be missing; `None` for a lean runtime, which has none.
    pub parser: Option<PathBuf>,
    /// Its version.
    pub version: Version,
}

impl Installed {
    /// The TensorRT in `directory`, else that in the directory of `REGATTA_TENSORRT`, else the system's newest.
    ///
    /// # Errors
    /// [`OpenError`] when there is none, with what the loader said of each name, or a file is no TensorRT.
    pub fn find(directory: Option<&Path>) -> Result<Self, OpenError> {
        let named = env::var_os("REGATTA_TENSORRT").filter(|value| !value.is_empty());
        let directory = directory.map(Path::to_owned).or(named.map(PathBuf::from));
        let mut tried = Vec::new();
        // That a lean runtime is missing too is no help to whoever has none at all.
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
                // A file that was named and does not load is the answer; a bare name may simply not be installed.
                Err(reason) if directory.is_some() => {
                    return Err(OpenError::NotTensorRt { path: infer, reason });
                }
                Err(reason) => missing(parser.is_some(), reason),
            }
        }
        Err(OpenError::NotInstalled(tried))
    }
}

fn version_of(infer: &Path, rtx: bool) -> Result<Version, String> {
    // SAFETY: loading runs the library's initialisers; it is NVIDIA's, found under its own name, or the user's choice.
    let library = unsafe { Library::new(infer) }.map_err(|error| words(&error))?;
    // SAFETY: every TensorRT has this function with this type (NvInferRuntimeBase.h).
    let version = unsafe { library.get::<extern "C" fn() -> i32>(b"getInferLibVersion") };
    let number = version.map_err(|error| words(&error))?();
    Ok(Version::from_library(u32::try_from(number).unwrap_or(0), rtx))
}

/// What the loader says: the cause of libloading's error, which itself says only who was asked.
fn words(error: &libloading::Error) -> String {
    error
        .source()
        .map_or_else(|| error.to_string(), ToString::to_string)
}
