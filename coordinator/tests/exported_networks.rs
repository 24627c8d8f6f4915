//! Tests that `regatta benchmark prepare` exports networks from weights in their published form, and what it says about other files.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::{
    fs,
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
        for (name, text, ..) in PUBLISHED {
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

    fn regatta(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_regatta"));
        command.args(words).stdin(Stdio::null());
        command.env("REGATTA_WORKSPACE", self.path("lab"));
        command.env_remove("MLPERF_SCRATCH_PATH").output().unwrap()
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
