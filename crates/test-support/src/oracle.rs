//! Oracles that are installed by scripts below `tests/oracles`: libraries whose results ours are compared with.

use std::{
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use regatta_test_requirements::{Requirement, skip};

/// Returns a directory of `tests/oracles`, with an oracle's scripts.
pub fn directory(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/oracles")
        .join(name)
}

/// Returns the Python that has the libraries of the reference's image preprocessing. They are installed once. Records a skipped
/// test when they cannot be installed.
pub fn opencv() -> Option<PathBuf> {
    installed("opencv")
}

/// Returns the Python that has the tokenizer of the reference's preprocessing of SQuAD, as [`opencv`] does.
pub fn squad() -> Option<PathBuf> {
    installed("squad")
}

/// Returns the Python that has `pycocotools`, as [`opencv`] does.
pub fn coco() -> Option<PathBuf> {
    installed("coco")
}

/// Returns the Python that has Apache Otava, as [`opencv`] does.
pub fn otava() -> Option<PathBuf> {
    installed("otava")
}

/// Returns the script of axe-core, which finds obstacles to people in a page, as [`opencv`] does.
pub fn axe() -> Option<PathBuf> {
    installed("axe")
}

/// Returns the Python that has ONNX and its tests of operators, as [`opencv`] does.
pub fn onnx() -> Option<PathBuf> {
    installed("onnx")
}

/// Returns the Python that has ONNX Runtime, as [`opencv`] does.
pub fn onnxruntime() -> Option<PathBuf> {
    installed("onnxruntime")
}

/// Returns the Python that has the library that the reference of YOLO calls, as [`opencv`] does.
pub fn ultralytics() -> Option<PathBuf> {
    installed("ultralytics")
}

/// Returns the Python that has the libraries of the reference of 3D-UNet, as [`opencv`] does.
pub fn kits19() -> Option<PathBuf> {
    installed("kits19")
}

/// Returns the Python that has the libraries of the reference of RNN-T for speech and transcripts, as [`opencv`] does.
pub fn librispeech() -> Option<PathBuf> {
    installed("librispeech")
}

/// Returns the Python that has a network trained on ImageNet, photographs and ONNX Runtime, as [`opencv`] does.
pub fn efficientnet() -> Option<PathBuf> {
    installed("efficientnet")
}

/// Returns the Python that has the libraries of the reference's ROUGE of summaries, as [`opencv`] does.
pub fn summaries() -> Option<PathBuf> {
    installed("summaries")
}

/// Returns the Python that has the text normaliser of the reference of Whisper, as [`opencv`] does.
pub fn whisper() -> Option<PathBuf> {
    installed("whisper")
}

/// Returns the Python that has the tokenizer of the reference of Stable Diffusion XL, as [`opencv`] does.
pub fn clip() -> Option<PathBuf> {
    installed("clip")
}

/// Returns the Python that has llama.cpp's server, as [`opencv`] does.
pub fn llama_cpp() -> Option<PathBuf> {
    installed("llama-cpp")
}

/// Returns the Python whose packages have trained networks, with ONNX Runtime, as [`opencv`] does.
pub fn own_networks() -> Option<PathBuf> {
    installed("own-networks")
}

/// Returns the Python that has Triton's server with its python backend and ONNX Runtime, as [`opencv`] does.
pub fn triton() -> Option<PathBuf> {
    installed("triton")
}

/// Returns the directory in which a test may keep an installation that takes long.
#[must_use]
pub fn installation(name: &str) -> PathBuf {
    cache().join(name)
}

fn installed(name: &str) -> Option<PathBuf> {
    match install(name) {
        Ok(python) => Some(python),
        Err(reason) => {
            skip(Requirement::Package, format!("no oracle {name}: {reason}"));
            None
        }
    }
}

/// Runs a script of `tests/oracles/NAME` and returns what it prints.
pub fn run(python: &Path, name: &str, script: &str, arguments: &[&OsStr]) -> String {
    let script = directory(name).join(script);
    let output = Command::new(python).arg(script).args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the directory in which oracles are cached: `REGATTA_ORACLES`, by default in the user's cache.
pub(crate) fn cache() -> PathBuf {
    env::var_os("REGATTA_ORACLES").map_or_else(|| crate::cache().join("oracles"), PathBuf::from)
}

fn install(name: &str) -> Result<PathBuf, String> {
    let script = directory(name).join("install.sh");
    if !script.is_file() {
        return Err(format!("{} is not there", script.display()));
    }
    let cache = cache();
    fs::create_dir_all(&cache).map_err(|error| format!("{}: {error}", cache.display()))?;
    // Tests run in parallel, in threads and in processes; only one of them installs.
    let lock = fs::File::create(cache.join(format!("{name}.lock"))).map_err(|error| error.to_string())?;
    lock.lock().map_err(|error| error.to_string())?;
    let output = Command::new(&script)
        .env("REGATTA_ORACLES", &cache)
        .output()
        .map_err(|error| format!("{}: {error}", script.display()))?;
    if output.status.success() {
        return Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
    }
    Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
}
