//! An accuracy run whose first answers are far below the target ends early, unless its logs are delivered after it.

#![expect(clippy::expect_used, reason = "test code")]

use std::{fs, path::Path};

use regatta_tests::{Broker, DEVICE, Lab};
use serde_json::Value;

/// A benchmark of all 1,797 scans.
const BENCHMARK: &str = "scans";

fn lab() -> Lab {
    let mut lab = Lab::secure(Broker::Embedded).expect("the embedded broker");
    let text = include_str!("../../configs/benchmarks/digits.toml")
        .replace("name = \"digits\"", &format!("name = \"{BENCHMARK}\""))
        .replace("preprocessed_data/digits", "preprocessed_data/scans")
        .replace("total_samples = 597", "total_samples = 1797")
        .replace("skip_rows = 1200", "skip_rows = 0");
    let configs = lab.workspace().join("configs/benchmarks");
    fs::create_dir_all(&configs).expect("a directory of the lab");
    fs::write(configs.join("scans.toml"), text).expect("a benchmark");
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../datasets/digits");
    let (data, scratch) = (data.to_string_lossy().into_owned(), lab.scratch());
    let _ = lab.json(&[
        "prep",
        BENCHMARK,
        "--data",
        &data,
        "--output",
        &scratch.to_string_lossy(),
    ]);
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();
    lab
}

/// Gives every sample the label of another class.
fn change_labels(lab: &Lab) {
    let path = lab.scratch().join("preprocessed_data/scans/val_map.txt");
    let map = fs::read_to_string(&path).expect("the labels");
    let changed = map.lines().map(|line| {
        let (name, label) = line.split_once(' ').expect("a name and a label");
        let label: u8 = label.parse().expect("a label");
        format!("{name} {}\n", (label + 1) % 10)
    });
    fs::write(&path, changed.collect::<String>()).expect("the labels");
}

/// Requests an accuracy run at a rate, and returns its id.
fn request(lab: &Lab, queries_per_second: u32, more: &[&str]) -> String {
    let rate = format!("target_qps={queries_per_second}");
    let words = [
        "run",
        "--device",
        DEVICE,
        "--benchmark",
        BENCHMARK,
        "--scenario",
        "Server",
        "--mode",
        "AccuracyOnly",
        "--no-wait",
        "--conf",
        &rate,
    ];
    let requested: Value = lab.json(&[&words, more].concat());
    requested["runs"][0]["run"].as_str().expect("a run id").to_owned()
}

#[test]
fn an_accuracy_run_ends_when_its_first_answers_are_hopeless() {
    let lab = lab();
    let sound = request(&lab, 300, &[]);
    lab.wait_for_phase(&sound, "done");
    change_labels(&lab);
    // It would take 30 s.
    let hopeless = request(&lab, 60, &[]);
    // The coordinator finds the cause after the device has ended the run.
    regatta_tests::eventually("the record of the aborted run", 60, || {
        lab.show(&hopeless)["recorded"].is_string()
    });
    let shown = lab.show(&hopeless);
    assert_eq!(shown["phase"], "aborted", "{shown:#}");
    let reason = shown["reason"].as_str().unwrap_or_default();
    assert!(
        reason.contains("cannot reach its target") && reason.contains("first 500 answers"),
        "{shown:#}"
    );
    assert_eq!(shown["cause"], "workload", "{shown:#}");
    // The same run with all answers. It takes 12 s, long enough for the first answers to end it if they were judged.
    let complete = request(&lab, 150, &["--stream", "after"]);
    lab.wait_for_phase(&complete, "done");
    let value = |run: &str| {
        regatta_tests::eventually(&format!("the accuracy of {run}"), 30, || {
            lab.show(run)["accuracy"]["value"].is_number()
        });
        lab.show(run)["accuracy"]["value"].as_f64().unwrap_or_default()
    };
    assert!(value(&complete) < 5.0);
    // Judged with the labels that are there when it ends: it was recorded before they changed.
    assert!(value(&sound) > 95.0);
}
