//! Tests that `regatta benchmark prepare` exports networks from weights in their published form, and what it says about other files.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::{
    env, fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use regatta_test_support::oracle;
use serde_json::Value;

/// A benchmark's file, its weights, and the form in which they are published.
const PUBLISHED: [(&str, &str, &str, &str); 3] = [
    (
        "retinanet",
        include_str!("../../configs/benchmarks/retinanet.toml"),
        "resnext50_32x4d_fpn.pth",
        "archive",
    ),
    (
        "ssd-mobilenet",
        include_str!("../../configs/benchmarks/ssd-mobilenet.toml"),
        "ssd_mobilenet_v1.pytorch",
        "module",
    ),
    (
        "ssd-resnet34",
        include_str!("../../configs/benchmarks/ssd-resnet34.toml"),
        "resnet34-ssd1200.pytorch",
        "module",
    ),
];

/// Its weights are a directory.
const WHISPER: (&str, &str) = ("whisper", include_str!("../../configs/benchmarks/whisper.toml"));

struct Lab {
    directory: tempfile::TempDir,
    python: PathBuf,
}

impl Lab {
    /// Makes a workspace whose benchmarks download nothing, so that their data sets are missing. `None` without the packages of the tools.
    fn new() -> Option<Self> {
        let python = oracle::onnx()?;
        let directory = tempfile::tempdir().unwrap();
        let lab = Self { directory, python };
        assert!(lab.regatta(&["init"]).status.success());
        let configs = lab.path("lab/configs/benchmarks");
        fs::create_dir_all(&configs).unwrap();
        let published = PUBLISHED.map(|(name, text, ..)| (name, text));
        for (name, text) in published.into_iter().chain([WHISPER]) {
            let lines = text.lines().filter(|line| {
                let is_fetched = line.starts_with("fetch = ") || line.starts_with("checksums = [\"resnext50");
                !is_fetched
            });
            let text: Vec<&str> = lines.collect();
            fs::write(configs.join(format!("{name}.toml")), text.join("\n")).unwrap();
        }
        Some(lab)
    }

    fn path(&self, below: &str) -> PathBuf {
        self.directory.path().join(below)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_regatta"));
        command.args(words).stdin(Stdio::null());
        command.env("REGATTA_WORKSPACE", self.path("lab"));
        command.env_remove("MLPERF_SCRATCH_PATH");
        command
    }

    fn regatta(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    fn write_program(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn prepare(&self, name: &str, weights: &Path) -> Output {
        let (weights, python) = (weights.to_str().unwrap(), self.python.to_str().unwrap());
        let words = ["benchmark", "prepare", name, "--from", weights];
        self.regatta(&[&words[..], &["--python", python, "--format", "json"]].concat())
    }
}

#[test]
fn networks_are_exported_from_the_published_forms_of_weights() {
    let Some(lab) = Lab::new() else { return };
    for (name, text, file, form) in PUBLISHED {
        let weights = lab.path(file);
        let words = [name.as_ref(), form.as_ref(), weights.as_os_str()];
        oracle::run(&lab.python, "torch", "small.py", &words);
        let output = lab.prepare(name, &weights);
        let document: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        assert_eq!(
            output.status.code(),
            Some(1),
            "the data set is missing: {output:?}"
        );
        let steps: Vec<(&str, &str)> = document["benchmarks"][0]["steps"]
            .as_array()
            .unwrap()
            .iter()
            .map(|step| (step["step"].as_str().unwrap(), step["state"].as_str().unwrap()))
            .collect();
        assert_eq!(steps, [("copy", "done"), ("export", "done")], "{name}");
        let network = text.lines().find(|line| line.starts_with("file = ")).unwrap();
        let network = network.split('"').nth(1).unwrap();
        let network = fs::read(lab.path("lab/scratch").join(network)).unwrap();
        assert!(network.len() > 1_000_000, "{name}: {} bytes", network.len());
    }
}

/// A killed command has left a part of a copy, with which there are as many files as there should be.
#[test]
fn the_directory_of_published_weights_is_copied_completely_before_the_export() {
    let Some(lab) = Lab::new() else { return };
    let (weights, copies) = (
        lab.path("whisper-large-v3"),
        lab.path("lab/scratch/models/whisper/published"),
    );
    for directory in [&weights, &copies] {
        fs::create_dir_all(directory).unwrap();
        for name in ["config.json", "tokenizer.json"] {
            fs::write(directory.join(name), "{}").unwrap();
        }
    }
    fs::write(weights.join("model.safetensors"), "not those of Whisper").unwrap();
    fs::write(copies.join("model.safetensors.part"), "not").unwrap();
    let output = lab.prepare("whisper", &weights);
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(printed.contains("tools/export-whisper failed"), "{printed}");
    let copied = fs::read_to_string(copies.join("model.safetensors")).unwrap();
    assert_eq!(copied, "not those of Whisper");
    assert!(!copies.join("model.safetensors.part").exists());
}

/// Otherwise a later version of a package could break the tools, or write other files.
#[test]
fn virtual_environment_has_the_required_versions() {
    let Some(lab) = Lab::new() else { return };
    let weights = lab.path("ssd_mobilenet_v1.pytorch");
    let words = ["ssd-mobilenet".as_ref(), "module".as_ref(), weights.as_os_str()];
    oracle::run(&lab.python, "torch", "small.py", &words);
    // An environment whose pip only notes what it should install. It has other versions before.
    let installed = lab.path("installed.txt").display().to_string();
    let python = lab.python.display();
    let environment = format!(
        "#!/bin/sh\ncase $1 in\n-m) cat \"$7\" >{installed} ;;\n-c) [ -e {installed} ] ;;\n*) exec {python} \"$@\" ;;\nesac\n"
    );
    lab.write_program("environment", &environment);
    let made = lab.path("environment").display().to_string();
    let usual_path = env::var("PATH").unwrap();
    let python3 = format!(
        "#!/bin/sh\n[ \"$2\" = venv ] || {{ PATH={usual_path}; exec python3 \"$@\"; }}\n\
         mkdir -p \"$3/bin\"\ncp {made} \"$3/bin/python\"\n"
    );
    lab.write_program("bin/python3", &python3);
    let path = format!("{}:{usual_path}", lab.path("bin").display());
    let prepare = || {
        let words = [
            "benchmark",
            "prepare",
            "ssd-mobilenet",
            "--from",
            weights.to_str().unwrap(),
        ];
        let output = lab.command(&words).env("PATH", &path).output().unwrap();
        assert!(
            lab.path("lab/scratch/models/SSDMobileNet/ssd_mobilenet_v1_heads.onnx")
                .exists(),
            "{output:?}"
        );
        String::from_utf8(output.stderr).unwrap()
    };
    let printed = prepare();
    let required = fs::read_to_string(&installed).unwrap();
    let lines: Vec<&str> = required.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(
        lines.iter().all(|line| line.matches("==").count() == 1),
        "{lines:?}"
    );
    for name in ["numpy==", "onnx=="] {
        let line = lines.iter().find(|line| line.starts_with(name)).unwrap();
        assert!(printed.contains(line), "{line}: {printed}");
    }
    // They are installed once.
    fs::remove_dir_all(lab.path("lab/scratch/models/SSDMobileNet")).unwrap();
    let printed = prepare();
    assert!(!printed.contains("installing "), "{printed}");
}

#[test]
fn weights_of_another_model_or_damaged_ones_are_named() {
    let Some(lab) = Lab::new() else { return };
    let weights = lab.path("resnext50_32x4d_fpn.pth");
    let run = |name: &str, form: &str| {
        let words = [name.as_ref(), form.as_ref(), weights.as_os_str()];
        oracle::run(&lab.python, "torch", "small.py", &words);
    };
    let refused = |expected: &str| {
        let output = lab.prepare("retinanet", &weights);
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{printed}");
        assert!(
            printed.contains("tools/export-retinanet failed") && printed.contains(expected),
            "{printed}"
        );
        let copy = lab.path("lab/scratch/models/retinanet-resnext50-32x4d");
        fs::remove_file(copy.join("resnext50_32x4d_fpn.pth")).unwrap();
        assert!(!copy.join("retinanet_heads.onnx").exists());
    };
    run("ssd-mobilenet", "archive");
    refused("the weights have no tensor backbone.body.conv1.weight: they are not those of this model");
    run("retinanet", "compressed");
    refused("it is compressed");
    run("retinanet", "expanded");
    refused("a tensor has more numbers than its storage");
    run("retinanet", "archive");
    let content = fs::read(&weights).unwrap();
    fs::write(&weights, &content[..content.len() / 2]).unwrap();
    refused("is not a complete file of PyTorch");
}
