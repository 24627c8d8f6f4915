//! Tests of runs with a real agent: repeated at the measured rate, interrupted at a terminal, and removed on both sides.

#![expect(clippy::expect_used, reason = "test code")]

use std::process::Output;

use regatta_tests::{Broker, Lab, eventually, succeed_output, terminal::Terminal};

const OFFLINE: [&str; 9] = [
    "run",
    "--benchmark",
    "digits",
    "--scenario",
    "offline",
    "--engine",
    "null",
    "--duration",
    "1s",
];

fn lab() -> Lab {
    let mut lab = Lab::new(Broker::Embedded).expect("the embedded broker");
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();
    lab
}

fn output(lab: &Lab, words: &[&str], more: &[&str]) -> Output {
    let mut command = lab.regatta();
    command.args(words).args(more);
    command.output().expect("regatta")
}

#[test]
fn the_first_run_of_a_fresh_device_is_repeated_until_it_is_valid_and_can_be_removed() {
    let lab = lab();
    let facts = &lab.json(&["device", "list"])["devices"][0]["facts"];
    assert!(facts["heartbeat_ms"].as_u64().is_some(), "{facts}");
    let once = output(&lab, &OFFLINE, &["--retry", "0"]);
    let errors = String::from_utf8_lossy(&once.stderr);
    assert_eq!(once.status.code(), Some(1), "the first rate is a guess: {errors}");
    assert!(!errors.contains("again at"), "{errors}");
    // Another batch size has no measured rate yet.
    let repeated = output(&lab, &OFFLINE, &["--set", "batch_size=2", "--retry", "5"]);
    let errors = String::from_utf8_lossy(&repeated.stderr);
    assert_eq!(repeated.status.code(), Some(0), "{errors}");
    assert!(errors.contains("repeating at the measured rate"), "{errors}");

    let listed = lab.json(&["runs", "list", "-n", "1"]);
    let run = listed["runs"][0]["run"].as_str().expect("a run").to_owned();
    let on_device = lab.state().join("runs").join(&run);
    assert!(on_device.is_dir(), "{}", on_device.display());
    let _ = succeed_output(lab.regatta().args(["runs", "remove", "last", "--yes"]));
    assert!(!lab.workspace().join("runs").join(&run).exists());
    eventually("the device to forget the run", 30, || {
        (!on_device.exists()).then_some(())
    });
}

#[test]
fn ctrl_c_leaves_a_run_going_and_a_second_one_aborts_after_a_question() {
    let lab = lab();
    // The simulated engine is slow enough. The null engine would end before the abort.
    let words = "run --benchmark digits --scenario SingleStream --engine sim --duration 60s";
    let mut command = lab.regatta();
    command.args(words.split(' '));
    let mut terminal = Terminal::start(&command);
    terminal.wait_for("running");
    terminal.type_in("\u{3}");
    terminal.wait_for("1 run continues");
    terminal.wait_for("runs abort");
    terminal.type_in("\u{3}");
    terminal.wait_for("Abort 1 run? [y/N]");
    terminal.type_in("y\n");
    terminal.wait_for("abort requested for 1 of 1 run");
    assert_eq!(terminal.end().code(), Some(130), "{}", terminal.shown());
    let waited = output(&lab, &["runs", "wait", "last"], &["--format", "json"]);
    assert_eq!(waited.status.code(), Some(1), "{waited:?}");
    let document: serde_json::Value = serde_json::from_slice(&waited.stdout).expect("JSON");
    assert_eq!(document["runs"][0]["phase"], "aborted");
    let waited = output(&lab, &["runs", "watch", "last"], &[]);
    let [text, errors] = [&waited.stdout, &waited.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    let reason = "aborted by the user";
    assert!(
        text.lines().next().is_some_and(|line| line.contains(reason)),
        "{text}"
    );
    assert_eq!(
        (text.matches(reason).count(), errors.matches(reason).count()),
        (1, 0),
        "{text}{errors}"
    );
}
