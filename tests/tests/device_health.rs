//! Tests of the health of devices, apart from their state. Its own failures quarantine a device, a check and an operator clear
//! it, and a device out of service gets no new run.

#![expect(clippy::expect_used, reason = "test code")]

use std::{fs, path::Path, process::Output};

use regatta_tests::{Broker, DEVICE, Lab, Process, eventually, json_schema::findings};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const SHORT: [&str; 8] = [
    "--engine",
    "sim",
    "--scenario",
    "SingleStream",
    "--mode",
    "PerformanceOnly",
    "--duration",
    "1s",
];
const LONG: [&str; 8] = [
    "--engine",
    "sim",
    "--scenario",
    "SingleStream",
    "--mode",
    "PerformanceOnly",
    "--duration",
    "60s",
];

fn lab() -> Option<Lab> {
    let mut lab = Lab::new(Broker::Embedded)?;
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();
    Some(lab)
}

fn regatta(lab: &Lab, words: &[&str]) -> Output {
    lab.regatta().args(words).output().expect("regatta starts")
}

fn refused(lab: &Lab, words: &[&str]) -> String {
    let output = regatta(lab, words);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn run_words(more: &[&'static str]) -> Vec<&'static str> {
    [&["run", "--benchmark", "digits", "--no-wait"], &SHORT[..], more].concat()
}

fn health(lab: &Lab) -> Value {
    lab.json(&["device", "health", DEVICE])["devices"][0].clone()
}

fn wait_for_record(lab: &Lab, run: &str) -> Value {
    eventually("the run's record", 120, || {
        lab.show(run)["recorded"].as_str().is_some()
    });
    lab.show(run)
}

/// Ends a run as a device with failed storage or memory does.
fn break_a_run(lab: &Lab) -> Value {
    let run = lab.request_run(&LONG);
    lab.wait_for_phase(&run, "running");
    let job = fs::read(lab.state().join("runs").join(&run).join("job.json")).expect("the run's job");
    let job: Value = serde_json::from_slice(&job).expect("JSON");
    let pid = job["process"]["pid"]
        .as_i64()
        .and_then(|pid| i32::try_from(pid).ok());
    let pid = pid.and_then(Pid::from_raw).expect("a process");
    // Rust's handler takes the first signal for a stack overflow, and restores the default action.
    for _ in 0..2 {
        kill_process(pid, Signal::BUS).expect("it runs");
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    wait_for_record(lab, &run)
}

#[test]
fn failures_of_its_own_quarantine_a_device_and_a_check_clears_it() {
    let Some(lab) = lab() else {
        return;
    };
    assert_eq!(health(&lab)["health"], "good");
    for (number, expected) in [(1, "suspect"), (2, "suspect"), (3, "quarantined")] {
        let run = break_a_run(&lab);
        assert_eq!(run["cause"], "device", "{run:#}");
        let found = health(&lab);
        assert_eq!(
            (&found["health"], &found["device_failures_in_a_row"]),
            (&expected.into(), &number.into())
        );
    }
    let refusal = refused(&lab, &run_words(&["--device", DEVICE]));
    for part in [
        "accepts no runs",
        "quarantined since",
        "3 failures in a row",
        "SIGBUS",
        "device check",
        "--force",
    ] {
        assert!(refusal.contains(part), "`{part}` in {refusal}");
    }
    let status = regatta(&lab, &["status"]);
    assert!(String::from_utf8_lossy(&status.stdout).contains("is quarantined since"));

    // The golden cell is executed although the device is quarantined.
    let checked = lab.json(&["device", "check", DEVICE]);
    assert_eq!(checked["verdict"], "passed", "{checked:#}");
    assert_eq!(checked["health"]["health"], "good");
    let log = lab.json(&["device", "log", DEVICE]);
    let changes: Vec<_> = log["log"]
        .as_array()
        .expect("entries")
        .iter()
        .map(|entry| &entry["change"])
        .collect();
    let failed = "run failed because of the device";
    assert_eq!(changes, [failed, failed, failed, "check passed"]);

    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../coordinator/commands.schema.json");
    let schema: Value = serde_json::from_slice(&fs::read(schema).expect("the schema")).expect("JSON");
    for (name, document) in [
        ("deviceCheck", &checked),
        ("deviceLog", &log),
        ("deviceHealth", &health(&lab)),
    ] {
        assert_eq!(findings(document, &schema, name), Vec::<String>::new());
    }
}

#[test]
fn a_drained_device_finishes_its_run_and_gets_no_other() {
    let Some(lab) = lab() else {
        return;
    };
    let begun = lab.request_run(&LONG);
    lab.wait_for_phase(&begun, "running");
    let waiting = lab.request_run(&SHORT);
    let drained = lab.json(&["device", "drain", DEVICE, "--note", "new fan"]);
    assert_eq!(
        (&drained["health"], &drained["cause"]),
        (&"maintenance".into(), &"new fan".into())
    );
    assert_eq!(lab.phase(&begun), "running");
    let refusal = refused(&lab, &run_words(&["--device", DEVICE]));
    assert!(
        refusal.contains("new fan") && refusal.contains("device resume"),
        "{refusal}"
    );
    // A group leaves the device out, and no device is left here.
    let refusal = refused(&lab, &run_words(&["--device", "all"]));
    assert!(refusal.contains("maintenance"), "{refusal}");

    // A forced run overtakes the one that waits.
    let forced = lab.request_run(&[&SHORT[..], &["--force"]].concat());
    let log = lab.scratch().join("drain.log");
    let mut drain = Process::start(lab.regatta().args(["device", "drain", DEVICE, "--wait"]), &log);
    eventually("the wait to be announced", 10, || {
        drain.output().contains("waiting until no run")
    });
    assert!(drain.is_running());
    let _ = lab.json(&["runs", "abort", &begun]);
    let _ = wait_for_record(&lab, &begun);
    eventually("the device to have no run", 60, || !drain.is_running());
    assert!(
        drain.output().contains("is in maintenance and has no run"),
        "{}",
        drain.output()
    );
    assert_eq!(wait_for_record(&lab, &forced)["phase"], "done");
    assert_eq!(lab.show(&waiting)["phase"], "queued");
    let _ = lab.json(&["device", "resume", DEVICE]);
    assert_eq!(wait_for_record(&lab, &waiting)["phase"], "done");
}
