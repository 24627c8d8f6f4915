//! Tests of `engine build|inspect|list` through the binary. They use the real TensorRT-RTX, which builds without a GPU, and a
//! fake shim for what only a Jetson's TensorRT has.

mod abandoned;
mod cached;
mod diffusion;
mod models;
mod plugins;
mod resnet50;
mod speech;
mod versions;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

#[cfg(feature = "tract")]
use regatta_test_support::fixture::onnx;
use regatta_test_support::{fake_tensorrt::FakeTensorrt, real_tensorrt};
use tempfile::TempDir;

/// A directory with a model, a TensorRT and shims.
struct Place {
    scratch: TempDir,
    tensorrt: PathBuf,
    shims: PathBuf,
    /// The content of `tensorrt` and `shims` when these are fakes.
    fakes: Option<FakeTensorrt>,
}

impl Place {
    /// Returns the real TensorRT-RTX, or `None` after printing the reason. In CI its absence is a failure.
    fn real() -> Option<Self> {
        let root = real_tensorrt::root_with("libs/libtensorrt_rtx.so.1")?;
        Some(Self::with(root.join("libs"), root.join("shims")))
    }

    /// Returns a fake of JetPack 5's TensorRT 8.5.2, with its shim compiled with these flags.
    fn fake(flags: &[&str]) -> Self {
        let fakes = FakeTensorrt::with_shim(flags);
        let place = Self::with(fakes.libraries(), fakes.shims());
        Self {
            fakes: Some(fakes),
            ..place
        }
    }

    fn with(tensorrt: PathBuf, shims: PathBuf) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../datasets/digits/digits.onnx");
        fs::copy(model, scratch.path().join("digits.onnx")).unwrap();
        Self {
            scratch,
            tensorrt,
            shims,
            fakes: None,
        }
    }

    fn engine(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_regatta-agent"));
        command
            .arg("engine")
            .args(arguments)
            .current_dir(self.scratch.path())
            .env("REGATTA_TENSORRT", &self.tensorrt)
            .env("REGATTA_PLUGINS", &self.shims)
            .env_remove("REGATTA_ENGINES");
        command
    }

    /// Standard output of a command that ends with `code`, as JSON.
    fn json(&self, arguments: &[&str], code: i32) -> serde_json::Value {
        self.json_with(&[], arguments, code)
    }

    /// As [`Self::json`], with further properties of the fake.
    fn json_with(&self, fake: &[(&str, &str)], arguments: &[&str], code: i32) -> serde_json::Value {
        let mut command = self.command(&[arguments, &["--format", "json"]].concat());
        let output = command.envs(fake.iter().copied()).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Standard error of a command that ends with `code`.
    fn refused(&self, arguments: &[&str], code: i32) -> String {
        self.refused_with(&[], arguments, code)
    }

    /// As [`Self::refused`], with faults of the fake.
    fn refused_with(&self, faults: &[(&str, &str)], arguments: &[&str], code: i32) -> String {
        let output = self
            .command(arguments)
            .envs(faults.iter().copied())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    /// Changes the versions of the fakes, as [`FakeTensorrt::become_version`] does.
    fn become_version(&self, library: &str, shims: &[&str]) {
        self.fakes.as_ref().unwrap().become_version(library, shims);
    }

    /// The directory of the only engine in the cache.
    fn only_engine(&self) -> PathBuf {
        let entries = fs::read_dir(self.scratch.path().join("engines")).unwrap();
        let mut engines = entries
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_dir());
        let engine = engines.next().unwrap();
        assert_eq!(engines.next(), None);
        engine
    }
}

#[test]
fn the_real_tensorrt_builds_an_engine_once() {
    let Some(place) = Place::real() else { return };
    let build = [
        "build",
        "--onnx",
        "digits.onnx",
        "--batch",
        "8",
        "--profiles",
        "2",
    ];
    let built = place.json(&build, 0);
    assert_eq!(built["manifest"]["tensorrt"], "rtx-1.7.1");
    assert_eq!(built["manifest"]["batch"], 8);
    assert!(built["plan_bytes"].as_u64().unwrap() > 10_000, "{built:#}");

    let again = place.engine(&build);
    assert!(
        String::from_utf8_lossy(&again.stderr).contains("found in engines"),
        "{again:?}"
    );
    let listed = place.json(&["list"], 0);
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(listed[0]["plan_sha256"], built["plan_sha256"]);

    // Without a GPU the plan does not load, and TensorRT says why; with one it does.
    let engine = place.only_engine();
    let blocks = place.json(&[&build[..], &["--input-format", "chw32"]].concat(), 0);
    assert_eq!(blocks["manifest"]["input"]["format"], "chw32");
    assert_ne!(blocks["plan_sha256"], built["plan_sha256"]);
    let inspected = place.engine(&["inspect", engine.to_str().unwrap()]);
    let output_text = String::from_utf8_lossy(&inspected.stdout).into_owned();
    match inspected.status.code() {
        Some(0) => assert!(output_text.contains("runs here     yes"), "{output_text}"),
        Some(1) => assert!(
            output_text.contains("cudaError 35") || output_text.contains("Cuda"),
            "{output_text}"
        ),
        _ => panic!("{inspected:?}"),
    }
}

/// Every input is in the profile of each context.
#[cfg(feature = "tract")]
#[test]
fn the_real_tensorrt_builds_a_network_of_three_inputs() {
    let Some(place) = Place::real() else { return };
    let model = onnx::three_inputs(onnx::INT32, true);
    fs::write(place.scratch.path().join("three.onnx"), model).unwrap();
    let build = ["build", "--onnx", "three.onnx", "--batch", "4", "--profiles", "2"];
    let built = place.json(&build, 0);
    assert_eq!(built["manifest"]["profiles"], 2);
    assert!(built["plan_bytes"].as_u64().unwrap() > 1_000, "{built:#}");
}

#[cfg(feature = "tract")]
fn words(text: &str) -> Vec<&str> {
    text.split_ascii_whitespace().collect()
}

/// Inputs as BERT's reference declares them. The flags that set its dynamic dimensions are part of the key.
#[cfg(feature = "tract")]
#[test]
fn the_real_tensorrt_builds_a_network_whose_dimensions_are_free() {
    let Some(place) = Place::real() else { return };
    let model = onnx::three_inputs(onnx::INT64, false);
    fs::write(place.scratch.path().join("free.onnx"), model).unwrap();
    let shapes = "--input-shape input_ids=64 --input-shape input_mask=64 --input-shape segment_ids=64";
    let build = |shapes: &str| format!("build --onnx free.onnx --batch 4 --profiles 2 {shapes}");
    for (shapes, reason) in [
        (
            "",
            "is [-1, -1], and only the first of its dimensions, the batch, may be free: give the others as --input-shape ",
        ),
        (
            "--input-shape tokens=64",
            "the network has no input tokens; it has segment_ids, input_ids, input_mask",
        ),
        (
            "--input-shape 64",
            "the network has several inputs, and none was named",
        ),
        (
            "--input-shape input_ids=8,8",
            "the input input_ids is [-1, -1], and does not take 8, 8 behind its batch",
        ),
    ] {
        let message = place.refused(&words(&build(shapes)), 2);
        assert!(message.contains(reason), "{shapes}: {message}");
    }
    let built = place.json(&words(&build(shapes)), 0);
    assert_eq!(
        built["manifest"]["input_shapes"][1],
        serde_json::json!({ "name": "input_mask", "dims": [64] })
    );
    assert!(built["plan_bytes"].as_u64().unwrap() > 1_000, "{built:#}");
    // TensorRT itself reports wrong weights.
    place.refused(&words(&build(&shapes.replace("64", "63"))), 3);
}

/// Each input has a shape for each length, and each length has profiles.
#[cfg(feature = "tract")]
#[test]
fn the_real_tensorrt_builds_a_network_for_several_lengths() {
    let Some(place) = Place::real() else { return };
    fs::write(place.scratch.path().join("free.onnx"), onnx::sequences()).unwrap();
    let shapes = |lengths: &[u32]| {
        let inputs = ["input_ids", "input_mask", "segment_ids"];
        let flags = lengths.iter().flat_map(|length| {
            inputs
                .iter()
                .map(move |input| format!(" --input-shape {input}={length}"))
        });
        flags.collect::<String>()
    };
    let build = |shapes: &str| format!("build --onnx free.onnx --batch 4 --profiles 2{shapes}");
    let one = place.json(&words(&build(&shapes(&[64]))), 0);
    let several = place.json(&words(&build(&shapes(&[16, 40, 64]))), 0);
    assert_eq!(several["manifest"]["input_shapes"].as_array().unwrap().len(), 9);
    let bytes = |built: &serde_json::Value| built["plan_bytes"].as_u64().unwrap();
    assert!(bytes(&several) > bytes(&one), "{several:#}");
    let uneven = format!(
        "{} --input-shape input_ids=40 --input-shape input_mask=40 --input-shape input_ids=16",
        shapes(&[64])
    );
    let message = place.refused(&words(&build(&uneven)), 2);
    assert!(
        message.contains("the input input_mask has 2 shapes, but another input has 3"),
        "{message}"
    );
}

#[test]
fn real_tensorrt_errors_are_passed_on() {
    let Some(place) = Place::real() else { return };
    let model = fs::read(place.scratch.path().join("digits.onnx")).unwrap();
    fs::write(place.scratch.path().join("cut.onnx"), &model[..model.len() / 2]).unwrap();
    let cut = place.refused(&["build", "--onnx", "cut.onnx"], 2);
    assert!(cut.contains("TensorRT rejects the model"), "{cut}");
    let precision = place.refused(&["build", "--onnx", "digits.onnx", "--precision", "int8"], 2);
    assert!(
        precision.contains("takes types from the network alone"),
        "{precision}"
    );
    let int8 = ["build", "--onnx", "digits.onnx", "--precision", "int8"];
    let samples = [&int8[..], &["--calibration-samples", "."]].concat();
    let calibration = place.refused(&samples, 2);
    assert!(
        calibration.contains("TensorRT rtx-1.7.1 has no calibrator"),
        "{calibration}"
    );
    let dla = place.refused(&["build", "--onnx", "digits.onnx", "--dla-core", "0"], 2);
    assert!(
        dla.contains("DLA core 0 was requested") && dla.contains("finds 0 here"),
        "{dla}"
    );
    let input = ["build", "--onnx", "digits.onnx", "--input-dtype"];
    let int8 = place.refused(&[&input[..], &["int8"]].concat(), 2);
    assert!(
        int8.contains(
            "is of another type than was requested, and TensorRT rtx-1.7.1 takes types from the network alone"
        ),
        "{int8}"
    );
    let format = place.refused(&[&input[..], &["fp32", "--input-format", "dla_hwc4"]].concat(), 3);
    assert!(
        format.contains("has dataType Float unsupported by tensor's allowed TensorFormats"),
        "{format}"
    );
    assert_eq!(place.json(&["list"], 0), serde_json::json!([]), "nothing is kept");
}

#[test]
fn placement_on_dla_is_reported_and_fallback_can_be_refused() {
    let place = Place::fake(&[]);
    let build = [
        "build",
        "--onnx",
        "digits.onnx",
        "--dla-core",
        "1",
        "--precision",
        "fp16",
    ];
    let built = place.json(&build, 0);
    let layers = built["placement"]["layers"].as_array().unwrap();
    assert_eq!(layers.len(), 3);
    assert_eq!(layers[1]["on_dla"], false);
    assert_eq!(layers[1]["reason"], "top_k: DLA has no TopK");
    assert_eq!(built["tensors"][0]["type"], "fp32");

    let refused = place.refused(&[&build[..], &["--no-fallback"]].concat(), 2);
    assert!(refused.contains("1 of 3 layers cannot (top_k)"), "{refused}");
    let none = place.refused_with(
        &[("FAKE_TRT_NO_DLA", "1")],
        &[&build[..], &["--batch", "2"]].concat(),
        2,
    );
    assert!(
        none.contains("DLA core 1 was requested, but TensorRT 8.5.2 finds 0 here: this version drives DLA where the chip has it"),
        "{none}"
    );
    let shown = place.engine(&build);
    insta::assert_snapshot!(mask(&String::from_utf8_lossy(&shown.stdout)));
}

/// Removes the fields that differ between machines and builds.
fn mask(shown: &str) -> String {
    let lines = shown.lines().map(|line| match line.trim_start().split_once(' ') {
        Some(("engine", _)) => "engine KEY".to_owned(),
        Some(("plan", _)) => "  plan          PATH, SIZE".to_owned(),
        Some(("built", _)) => "  built         by TensorRT, on, in".to_owned(),
        _ => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_missing_part_is_reported_with_a_hint() {
    let mut place = Place::fake(&[]);
    assert!(
        place
            .refused(&["build", "--onnx", "missing.onnx"], 2)
            .contains("missing.onnx cannot be read")
    );
    assert!(
        place
            .refused(&["build", "--onnx", "digits.onnx", "--min-batch", "2"], 2)
            .contains("is above --batch 1")
    );
    assert!(
        place
            .refused(&["inspect", "0123456789abcdef"], 3)
            .contains("cannot be used")
    );

    let shims = std::mem::replace(&mut place.shims, place.scratch.path().join("digits.onnx"));
    let no_directory = place.refused(&["build", "--onnx", "digits.onnx"], 3);
    assert!(
        no_directory.contains("the directory ")
            && no_directory.contains(" cannot be read")
            && no_directory.contains("Not a directory"),
        "{no_directory}"
    );
    place.shims = place.scratch.path().join("broken");
    fs::create_dir(&place.shims).unwrap();
    fs::write(place.shims.join("libregatta_trt-8.5.2.so"), "no library").unwrap();
    let broken = place.refused(&["build", "--onnx", "digits.onnx"], 3);
    assert!(
        broken.contains("libregatta_trt-8.5.2.so cannot be loaded: ") && broken.contains("file too short"),
        "{broken}"
    );
    place.shims = place.scratch.path().join("nowhere");
    let no_shim = place.refused(&["build", "--onnx", "digits.onnx"], 3);
    assert!(
        no_shim.contains("TensorRT 8.5.2 is installed, but there is no shim for it"),
        "{no_shim}"
    );
    place.shims = shims;
    let libs = place.tensorrt.clone();
    fs::write(libs.join("libnvinfer.so.8"), "no library").unwrap();
    assert!(
        place
            .refused(&["build", "--onnx", "digits.onnx"], 3)
            .contains("cannot be opened as TensorRT")
    );
    fs::remove_file(libs.join("libnvinfer.so.8")).unwrap();
    assert!(
        place
            .refused(&["build", "--onnx", "digits.onnx"], 3)
            .contains("no TensorRT was found")
    );

    let other = Place::fake(&["-DFAKE_ABI=99"]);
    assert!(
        other
            .refused(&["build", "--onnx", "digits.onnx"], 3)
            .contains("has ABI 99, but this agent needs ABI 7")
    );
}

#[test]
fn memory_that_seems_too_small_is_reported_before_the_build() {
    let place = Place::fake(&[]);
    // This GPU shares the host's memory, so the limit is half of it.
    let build = ["build", "--onnx", "digits.onnx", "--workspace", "1000000000"];
    let built = place.json(&[&build[..], &["--ignore-memory"]].concat(), 0);
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap();
    let total = meminfo
        .lines()
        .next()
        .unwrap()
        .split_ascii_whitespace()
        .nth(1)
        .unwrap();
    let half = total.parse::<u64>().unwrap() * 1024 / 2;
    assert_eq!(built["manifest"]["workspace_bytes"], half, "{built:#}");

    // A discrete GPU has memory of its own, of which this one has 1 MiB.
    let cuda = place.fakes.as_ref().unwrap().cuda();
    let gpu = [
        ("LD_LIBRARY_PATH", cuda.to_str().unwrap()),
        ("FAKE_CUDA_FAULTS", "discrete,memory=1048576"),
    ];
    let build = [
        "build",
        "--onnx",
        "digits.onnx",
        "--batch",
        "2",
        "--workspace",
        "2",
    ];
    let message = place.refused_with(&gpu, &build, 3);
    assert!(
        message.contains("the build needs about 3 MiB on the GPU, but 1 MiB are free; hint: end other programs that use it, or set a smaller --workspace, or build with --ignore-memory"),
        "{message}"
    );
    place.json_with(&gpu, &[&build[..], &["--ignore-memory"]].concat(), 0);
}

#[test]
fn an_engine_is_bound_to_the_gpu_or_to_what_the_board_says_of_its_own() {
    let place = Place::fake(&[]);
    let cuda = place.fakes.as_ref().unwrap().cuda();
    let chip = |faults: &str, batch: &str| {
        let gpu = [
            ("LD_LIBRARY_PATH", cuda.to_str().unwrap()),
            ("FAKE_CUDA_FAULTS", faults),
        ];
        let built = place.json_with(&gpu, &["build", "--onnx", "digits.onnx", "--batch", batch], 0);
        built["manifest"]["chip"].as_str().unwrap().to_owned()
    };
    assert_eq!(chip("discrete", "1"), "fake GPU");
    // A machine whose device tree names no module.
    let [small, large] = [chip("sms=14", "2"), chip("sms=16", "2")];
    if small.ends_with("(compute 8.7, 14 SMs)") {
        assert!(large.ends_with("(compute 8.7, 16 SMs)"), "{large}");
    } else {
        assert_eq!(small, large, "the module tells it");
    }
    assert!(small.ends_with(')'), "{small}");
}
