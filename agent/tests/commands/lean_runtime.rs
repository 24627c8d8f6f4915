//! Tests with the real lean runtime of TensorRT 11.4, which loads version-compatible engines and builds none. The agent finds it
//! by its name, opens it through the shim of its version, and reports its refusals. No engine runs here.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use regatta_test_support::real_tensorrt;
use tempfile::TempDir;

/// A model in its own directory, with NVIDIA's libraries and the shims of `crates/tensorrt/shim/for-tests.sh`.
struct Place {
    scratch: TempDir,
    root: PathBuf,
}

impl Place {
    /// Returns `None`, after printing the reason, without a lean runtime. In CI its absence is a failure.
    fn real() -> Option<Self> {
        let root = real_tensorrt::root_with("lean/libnvinfer_lean.so.11")?;
        let scratch = tempfile::tempdir().unwrap();
        let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../datasets/digits/digits.onnx");
        fs::copy(model, scratch.path().join("digits.onnx")).unwrap();
        Some(Self { scratch, root })
    }

    /// Runs `regatta-agent engine` with the libraries of a directory and these shims.
    fn engine(&self, libraries: &str, shims: &Path, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_regatta-agent"))
            .arg("engine")
            .args(arguments)
            .current_dir(self.scratch.path())
            .env("REGATTA_TENSORRT", self.root.join(libraries))
            .env("REGATTA_PLUGINS", shims)
            .env_remove("REGATTA_ENGINES")
            .output()
            .unwrap()
    }

    fn shims(&self) -> PathBuf {
        self.root.join("shims")
    }

    /// Returns why the lean runtime refuses the only engine in the cache.
    fn refusal(&self) -> String {
        let key = self.engine_directory().file_name().unwrap().to_owned();
        let arguments = ["inspect", key.to_str().unwrap(), "--format", "json"];
        let output = self.engine("lean", &self.shims(), &arguments);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let message: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        message["refusal"].as_str().unwrap().to_owned()
    }

    fn engine_directory(&self) -> PathBuf {
        let entries = fs::read_dir(self.scratch.path().join("engines")).unwrap();
        let mut paths = entries.map(|entry| entry.unwrap().path());
        paths.find(|path| path.is_dir()).unwrap()
    }
}

#[test]
fn a_lean_runtime_is_opened_by_the_shim_of_its_version_and_builds_nothing() {
    let Some(place) = Place::real() else { return };
    let build = ["build", "--onnx", "digits.onnx"];
    let refused = place.engine("lean", &place.shims(), &build);
    let message = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(3), "{message}");
    assert!(
        message.contains("building with TensorRT 11.4.0")
            && message.contains("this TensorRT has no builder: it is a lean or dispatch runtime"),
        "{message}"
    );

    // The other shim does not match this library.
    let others = place.scratch.path().join("others");
    fs::create_dir(&others).unwrap();
    let rtx = "libregatta_trt-rtx-1.7.1.so";
    fs::copy(place.shims().join(rtx), others.join(rtx)).unwrap();
    let none = place.engine("lean", &others, &build);
    let message = String::from_utf8_lossy(&none.stderr);
    assert_eq!(none.status.code(), Some(3), "{message}");
    assert!(
        message.contains("TensorRT 11.4.0 is installed, but there is no shim for it; found are rtx-1.7.1"),
        "{message}"
    );
}

#[test]
fn lean_runtime_error_is_passed_on() {
    let Some(place) = Place::real() else { return };
    let built = place.engine("libs", &place.shims(), &["build", "--onnx", "digits.onnx"]);
    assert_eq!(built.status.code(), Some(0), "{built:?}");
    assert_eq!(
        place.refusal(),
        "the engine was built for another TensorRT version: rtx-1.7.1, but here it is 11.4.0; hint: build it again"
    );

    // With a changed version, the plan reaches TensorRT, which first needs a driver, and then refuses the plan.
    let manifest = place.engine_directory().join("engine.json");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("\"rtx-1.7.1\"", "\"11.4.0\"")).unwrap();
    let refusal = place.refusal();
    assert!(
        refusal.starts_with("TensorRT does not load the plan: ") && refusal.contains("Error Code"),
        "{refusal}"
    );
}
