//! Tests that texts of a tree, a log or a device cannot control a terminal or begin a line of a report.

#![expect(clippy::unwrap_used, reason = "test code")]

mod support;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use regatta_catalogue::known;
use regatta_test_support::synthetic_submission;
use regatta_text::escape_lines;
use regatta_types::documents::{
    Attempt, ControlProof, DeviceFacts, LoadgenChoice, RunPhase, StateFinding, StateProof,
};
use regatta_wire::{message::Message as _, topic::Leaf};
use serde_json::Value;
use support::{
    Dice,
    coordinator::Coordinator,
    delivering::{Faults, SUMMARY},
    device::SimulatedDevice,
    eventually,
};

/// Clears a screen in two ways, hides text, and begins a line that reads like a verdict.
const HOSTILE: &str = "x\x1b[2J\u{9b}2J\u{202e}\r\nFORGED: PASS";

/// Asserts that nothing hostile reached the output, and returns how much of it mentions the hostile text.
fn assert_safe(what: &str, output: &Output) -> usize {
    let mut mentions = 0;
    for stream in [&output.stdout, &output.stderr] {
        let text = String::from_utf8(stream.clone()).unwrap();
        assert!(!text.contains("panicked"), "{what}: {text}");
        assert_eq!(escape_lines(&text), text, "{what}");
        for line in text.lines() {
            // A line of HTML ends with its cell.
            let line = line.trim_start_matches([' ', '"']);
            assert!(!line.starts_with("FORGED"), "{what}: {text}");
        }
        mentions += text.matches("FORGED").count();
    }
    mentions
}

fn regatta(directory: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_regatta"))
        .current_dir(directory)
        .env_remove("REGATTA_WORKSPACE")
        .args(words)
        .output()
        .unwrap()
}

fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

fn poison(value: &mut Value) {
    match value {
        Value::String(text) => text.push_str(HOSTILE),
        Value::Array(values) => values.iter_mut().for_each(poison),
        Value::Object(fields) => fields.values_mut().for_each(poison),
        _ => {}
    }
}

/// The texts of a tree's documents and logs, each with the hostile text behind it.
fn poison_contents(tree: &Path, only: &str) {
    let mut found = Vec::new();
    files(tree, &mut found);
    for path in found {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap();
        let changed = match name.as_str() {
            _ if only != "all" && only != name => continue,
            "mlperf_log_detail.txt" => {
                let lines = text.lines().map(|line| {
                    let mut record: Value =
                        serde_json::from_str(line.strip_prefix(":::MLLOG ").unwrap()).unwrap();
                    poison(&mut record["value"]);
                    format!(":::MLLOG {record}\n")
                });
                lines.collect()
            }
            _ if name.ends_with(".json") && text.starts_with('{') => {
                let mut document: Value = serde_json::from_str(&text).unwrap();
                poison(&mut document);
                document.to_string()
            }
            // Text that is read by lines.
            _ => text.replace('\n', "\x1b[2J\u{9b}2J\u{202e}\n"),
        };
        fs::write(path, changed).unwrap();
    }
}

/// Directories and files with hostile names at every depth.
fn poison_names(tree: &Path) {
    let mut found = Vec::new();
    files(tree, &mut found);
    for path in found {
        for directory in path.ancestors().skip(1).take_while(|place| *place != tree) {
            let _ = fs::write(directory.join(HOSTILE), HOSTILE);
            let copy = directory.parent().unwrap().join(format!("{HOSTILE} too"));
            let _ = fs::create_dir(&copy);
            let _ = fs::copy(&path, copy.join(path.file_name().unwrap()));
        }
    }
}

#[test]
fn submission_output_escapes_control_characters_of_the_tree() {
    let commands = [
        "submission check tree --version v6.0",
        "submission check tree --version v6.0 --format json",
        "submission check tree --version v6.0 --format html",
        "submission check tree --version v6.0 --as-official",
        "submission check tree --version v6.0 --as-official --format json",
        "submission check tree --version v6.0 --as-official --format html",
        "submission infer --input tree --output OUT --round v6.0",
        "submission truncate --input tree --submitter Team --output OUT --verify",
        "submission pack --input tree --submitter Team --output OUT --password-file word",
        "submission pack --input tree --submitter Team --output OUT --password-file word --format json",
        "audit verify TEST01 --results RESULTS --compliance RESULTS/TEST01/performance/run_1 --output OUT --round v6.0",
        "power check --round v4.0 RESULTS/performance",
    ];
    let mut mentions = 0;
    for case in [
        "names",
        "all",
        "mlperf_log_detail.txt",
        "mlperf_log_summary.txt",
        "measurements.json",
        "board.json",
    ] {
        let place = tempfile::tempdir().unwrap();
        let tree = place.path().join("tree");
        let round = known::round("v6.0").unwrap().unwrap();
        synthetic_submission::write(&tree, round);
        fs::write(place.path().join("word"), "harbour\n").unwrap();
        if case == "names" {
            poison_names(&tree);
        } else {
            poison_contents(&tree, case);
        }
        for (number, command) in commands.iter().enumerate() {
            let command = command
                .replace("OUT", &format!("out-{number}"))
                .replace("RESULTS", "tree/closed/Team/results/board/whisper/Offline");
            let words: Vec<&str> = command.split(' ').collect();
            mentions += assert_safe(&format!("{case}: {command}"), &regatta(place.path(), &words));
        }
    }
    assert!(mentions > 100, "{mentions}: the reports show too little");
}

#[test]
fn names_in_errors_and_of_exported_runs_are_escaped() {
    let place = tempfile::tempdir().unwrap();
    let run = place.path().join(HOSTILE);
    fs::create_dir_all(run.join("files")).unwrap();
    fs::write(run.join("spec.json"), "{}").unwrap();
    fs::write(run.join("files/evidence.json"), "{}").unwrap();
    fs::write(
        place.path().join("plan.toml"),
        format!("schema = 1\n# {HOSTILE}\n[[run]]\nx = 1\n"),
    )
    .unwrap();
    for words in [
        vec!["runs", "verify", HOSTILE],
        vec![
            "submission",
            "stage",
            "--rehearsal",
            "--output",
            "tree",
            "--run",
            HOSTILE,
        ],
        vec![
            "submission",
            "unpack",
            "--input",
            HOSTILE,
            "--submitter",
            "Team",
            "--output",
            "out",
        ],
        vec!["--workspace", HOSTILE, "runs", "list"],
    ] {
        let output = regatta(place.path(), &words);
        assert!(
            assert_safe(&format!("{words:?}"), &output) > 0,
            "{words:?}: {output:?}"
        );
    }
}

/// Evidence of which every text is hostile.
fn poisoned_state() -> StateProof {
    let text = HOSTILE.to_owned();
    StateProof {
        requested: None,
        set: vec![ControlProof {
            control: text.clone(),
            before: Some(text.clone()),
            requested: text.clone(),
            read: Some(text.clone()),
        }],
        after: [(text.clone(), text.clone())].into(),
        not_restored: Some(text.clone()),
        findings: vec![StateFinding {
            seconds: 1.0,
            what: text,
            samples: 1,
        }],
        ..StateProof::default()
    }
}

#[test]
fn command_output_escapes_control_characters_of_devices() {
    let mut coordinator = Coordinator::embedded();
    coordinator.serve();
    let mut device = SimulatedDevice::connect(coordinator.port, 1);
    let facts = DeviceFacts {
        hostname: HOSTILE.to_owned(),
        model: HOSTILE.to_owned(),
        os: HOSTILE.to_owned(),
        kernel: HOSTILE.to_owned(),
        arch: HOSTILE.to_owned(),
        ..DeviceFacts::default()
    };
    let mut hello = device.hello(Vec::new());
    hello.name = HOSTILE.to_owned();
    hello.agent = HOSTILE.to_owned();
    hello.facts_json = serde_json::to_vec(&facts).unwrap();
    device.say(Leaf::Hello, hello.to_frame().unwrap(), true);
    eventually("the device", 30, || {
        coordinator.json(&["device", "list"])["devices"][0]["online"].as_bool()
    });
    let requested = coordinator.request_run("PerformanceOnly");
    let (run, spec_json) = device.next_start();
    device.tell(run, RunPhase::Running, &[]);
    let summary = "MLPerf Results Summary\nMode     : PerformanceOnly\nSamples\x1b[2J\u{9b}2J per second: 12\n\
                   Result is : INVALID\n  Min\x1b[2J duration satisfied : NO\n";
    let mut files = BTreeMap::from([(SUMMARY.to_owned(), summary.as_bytes().to_vec())]);
    device.seal_with(run, &spec_json, &mut files, |evidence| {
        evidence.outcome.phase = RunPhase::Failed;
        evidence.outcome.reason = Some(HOSTILE.to_owned());
        evidence.not_a_measurement = vec![HOSTILE.to_owned()];
        evidence.state = Some(poisoned_state());
        evidence.attempts = vec![Attempt {
            name: HOSTILE.to_owned(),
            requested_loadgen: LoadgenChoice::Native,
            loadgen: None,
            engine: HOSTILE.to_owned(),
            valid: Some(false),
            invalid_reasons: vec![HOSTILE.to_owned()],
            started: None,
            ended: None,
            window: Default::default(),
            timing: None,
            warnings: vec![HOSTILE.to_owned()],
        }];
    });
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    device.tell(run, RunPhase::Draining, &names);
    device.deliver(run, &files, Faults::default(), &mut Dice::new(3), |_| {});
    device.tell(run, RunPhase::Done, &names);
    coordinator.record(&requested);
    let mut mentions = 0;
    for words in [
        vec!["device", "list"],
        vec!["device", "list", "--format", "json"],
        vec!["device", "show", device.id.as_str()],
        vec!["device", "show", device.id.as_str(), "--format", "json"],
        vec!["runs", "list"],
        vec!["runs", "show", &requested],
        vec!["runs", "show", &requested, "--format", "json"],
        vec!["runs", "verify"],
        vec![
            "submission",
            "stage",
            "--rehearsal",
            "--output",
            "tree",
            "--run",
            &requested,
        ],
    ] {
        mentions += assert_safe(&format!("{words:?}"), &coordinator.output(&words));
    }
    assert!(mentions > 10, "{mentions}: too little is shown");
    let log = coordinator.printed();
    assert_eq!(escape_lines(&log), log);
    assert!(
        !log.lines().any(|line| line.trim_start().starts_with("FORGED")),
        "{log}"
    );
}
