//! Benchmarks of one's own: trained networks from Python packages, images in every format and arrays of every type, described by a file and run by
//! commands alone. Each answer is that of ONNX Runtime for samples that OpenCV, PIL and NumPy prepared.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::{fs, path::Path, process::Command};

use regatta_test_support::oracle;
use regatta_tests::{Broker, Lab, printed};
use serde_json::Value;

/// Each benchmark with its metric's name in documents and scenarios. The files have the targets.
const CASES: [(&str, &str, &str); 10] = [
    ("nsfw", "MSE", "Offline"),
    ("nsfw-class", "exact", "SingleStream"),
    ("nudenet", "MSE", "Offline"),
    ("text-angle", "AUC", "SingleStream"),
    ("text-places", "MSE", "Offline"),
    ("file-kinds", "top5", "Offline"),
    ("speech-quality", "figure", "Offline"),
    // Its network takes one sample at a time.
    ("voice", "MSE", "Offline"),
    // The answer is its second output.
    ("voice-state", "MSE", "SingleStream"),
    ("types", "MSE", "Offline"),
];

/// Puts a case's files where a user puts them.
fn install(lab: &Lab, cases: &Path, name: &str, python: &Path) {
    let case = cases.join(name);
    let scratch = lab.scratch();
    let benchmarks = lab.workspace().join("configs/benchmarks");
    for directory in [&benchmarks, &scratch.join("models"), &scratch.join("expected")] {
        fs::create_dir_all(directory).unwrap();
    }
    let text = fs::read_to_string(case.join("benchmark.toml")).unwrap();
    let text = text.replace("PYTHON", python.to_str().unwrap());
    fs::write(benchmarks.join(format!("{name}.toml")), text).unwrap();
    fs::copy(
        case.join("network.onnx"),
        scratch.join(format!("models/{name}.onnx")),
    )
    .unwrap();
    fs::copy(
        case.join("expected.npy"),
        scratch.join(format!("expected/{name}.npy")),
    )
    .unwrap();
}

#[test]
fn trained_networks_answer_as_in_onnx_runtime() {
    let Some(python) = oracle::own_networks() else {
        return;
    };
    let Some(mut lab) = Lab::new(Broker::Embedded) else {
        return;
    };
    let cases = lab.workspace().join("cases");
    oracle::run(&python, "own-networks", "cases.py", &[cases.as_os_str()]);
    for (name, ..) in CASES {
        install(&lab, &cases, name, &python);
        let data = cases.join(name).join("data");
        let made = lab.json(&["prep", name, "--data", data.to_str().unwrap()]);
        assert!(
            made["samples"].as_u64().is_some_and(|samples| samples > 0),
            "{made:#}"
        );
    }
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();
    let library = format!("onnxruntime_library={}", python.with_file_name("lib").display());
    let without_warmup = ["--set", "warmup_duration=0"];
    for (engine, further) in [("tract", &[][..]), ("onnxruntime", &["--set", &library])] {
        let settings = [&without_warmup, further].concat();
        for (name, metric, scenario) in CASES {
            let run = lab.measure_with(engine, name, [scenario, "AccuracyOnly"], &settings);
            let accuracy = &run["accuracy"];
            assert_eq!(accuracy["metric"], metric, "{name} on {engine}: {run:#}");
            let log = lab.accuracy_log(&run);
            // It only succeeds when the target is reached.
            let again = lab.json(&["accuracy", name, "--log", log.to_str().unwrap()]);
            assert_eq!(
                again["accuracy"][0]["value"], accuracy["value"],
                "{name} on {engine}"
            );
            if name == "text-angle" {
                assert_eq!(accuracy["value"], accuracy["target"], "the area is known");
            }
        }
        let reason = refusal_of_another_output(&lab, engine, further);
        assert!(
            reason
                .contains("it has no output `logits`, which `outputs` names; its outputs are output, stateN"),
            "{reason}"
        );
    }
}

/// Names an output that the network does not have, and returns why the run fails.
fn refusal_of_another_output(lab: &Lab, engine: &str, settings: &[&str]) -> String {
    let file = lab.workspace().join("configs/benchmarks/voice-state.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("stateN", "logits")).unwrap();
    let command = [
        "run",
        "--benchmark",
        "voice-state",
        "--scenario",
        "Offline",
        "--engine",
        engine,
    ];
    let run = lab.judged(&[&command, settings].concat())["runs"][0].clone();
    fs::write(&file, text).unwrap();
    assert_eq!(run["phase"], "failed", "{run:#}");
    run["reason"].as_str().unwrap().to_owned()
}

/// A run's specification may come from elsewhere, and must not name a command that the workstation runs.
#[test]
fn only_the_workspaces_file_names_a_script() {
    let Some(mut lab) = Lab::new(Broker::Embedded) else {
        return;
    };
    let digits =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/benchmarks/digits.toml"))
            .unwrap();
    let (witness, score) = (lab.workspace().join("witness"), lab.workspace().join("score"));
    let script = |command: &str| {
        let own = "metric = \"top1\"\nreference = 98.995\nfactor = 0.99\n";
        assert!(digits.contains(own));
        let script = format!(
            "metric = \"script\"\nreference = 7\nfactor = 1.0\nside = \"at-most\"\nscript = [\"sh\", \"-c\", \"{command}\"]\n"
        );
        digits
            .replace(own, &script)
            .replace("name = \"digits\"", "name = \"scored\"")
    };
    let benchmarks = lab.workspace().join("configs/benchmarks");
    fs::create_dir_all(&benchmarks).unwrap();
    let file = benchmarks.join("scored.toml");
    fs::write(&file, script(&format!("touch {}; echo 5", witness.display()))).unwrap();
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();
    let run = lab.measure("scored", ["Offline", "AccuracyOnly"], &[]);
    assert_eq!(run["accuracy"]["value"], 5.0, "{run:#}");
    assert!(witness.exists());

    // The run still names the first command. What counts is the file of today.
    fs::remove_file(&witness).unwrap();
    fs::write(&file, script(&format!("touch {}; echo 9", score.display()))).unwrap();
    let log = lab.accuracy_log(&run);
    let judged = lab
        .regatta()
        .args(["accuracy", "scored", "--log"])
        .arg(&log)
        .output()
        .unwrap();
    assert_eq!(judged.status.code(), Some(1), "{}", printed(&judged));
    assert!(
        printed(&judged).contains("figure=9; target ≤ 7: missed"),
        "{}",
        printed(&judged)
    );
    assert!(score.exists() && !witness.exists());
    fs::write(&file, script("echo no labels >&2; exit 4")).unwrap();
    let failed = lab
        .regatta()
        .args(["accuracy", "scored", "--log"])
        .arg(&log)
        .output()
        .unwrap();
    let words = "failed (exit status: 4); last line of its error output: no labels";
    assert!(
        !failed.status.success() && printed(&failed).contains(words),
        "{}",
        printed(&failed)
    );
}

#[test]
fn the_schema_of_a_benchmarks_file_is_printed() {
    let output = Command::new(regatta_tests::regatta())
        .args(["benchmark", "schema"])
        .output()
        .unwrap();
    let schema: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(
        schema["properties"]["model"].is_object() && schema["$defs"].is_object(),
        "{schema:#}"
    );
}
