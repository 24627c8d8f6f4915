//! Tests of coordinator and device after one of them has lost or regained runs: thousands of runs, a failed read, a copied state
//! directory, a restored store. No log is lost.

#![expect(clippy::expect_used, reason = "test code")]

use std::{
    fs,
    path::Path,
    process::Command,
    time::{SystemTime, UNIX_EPOCH},
};

use regatta_test_support::strace;
use regatta_tests::{Broker, DEVICE, Lab, Process, agent, eventually, succeed_output};

fn request_run(lab: &Lab, duration: &str) -> String {
    let words = ["--engine", "sim", "--scenario", "SingleStream"];
    lab.request_run(&[&words[..], &["--mode", "PerformanceOnly", "--duration", duration]].concat())
}

/// Returns a lab with an active run.
fn lab_with_a_run(broker: Broker, duration: &str) -> Option<(Lab, String)> {
    let mut lab = Lab::new(broker)?;
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();
    let run = request_run(&lab, duration);
    lab.wait_for_phase(&run, "running");
    Some((lab, run))
}

/// Waits until a run has its record, and checks that it is complete.
fn assert_complete(lab: &Lab, run: &str) {
    eventually("the run's record", 180, || {
        lab.show(run)["recorded"].as_str().is_some()
    });
    let record = fs::read(lab.workspace().join("runs").join(run).join("record.json")).expect("it is there");
    let record: serde_json::Value = serde_json::from_slice(&record).expect("JSON");
    assert_eq!(record["delivery"]["complete"], true, "{record:#}");
    assert_eq!(record["evidence_signature_valid"], true, "{record:#}");
    let [coordinator, device] = lab.hashes(run);
    assert_eq!(coordinator, device);
    assert!(coordinator.contains_key("evidence.sig"));
}

fn reason(lab: &Lab, run: &str) -> String {
    lab.show(run)["reason"].as_str().unwrap_or_default().to_owned()
}

fn copy(from: &Path, to: &Path) {
    let _ = succeed_output(Command::new("cp").arg("-a").arg(from).arg(to));
}

/// More runs than one message can name.
#[test]
fn a_device_with_thousands_of_runs_loses_none() {
    let Some((mut lab, run)) = lab_with_a_run(Broker::Embedded, "60s") else {
        return;
    };
    lab.device.as_mut().expect("it runs").kill();
    let job = r#"{ "schema": 1, "state": { "phase": "done", "reason": null, "revision": 6 }, "arrival": 0,
        "ending": null, "sealed": true, "process": null, "before": null,
        "window": { "bytes_sent": 0, "daemon_cpu_ns": 0 } }"#;
    for number in 0..4_000 {
        let older = format!("01930e7a-6f00-7000-8000-{number:012x}");
        let directory = lab.state().join("runs").join(older);
        fs::create_dir_all(directory.join("files")).expect("a directory");
        fs::write(directory.join("job.json"), job).expect("a file");
    }
    lab.start_device();
    assert_complete(&lab, &run);
    let reason = reason(&lab, &run);
    assert!(reason.starts_with("interrupted: "), "{reason}");
    let printed = lab.coordinator.as_ref().expect("it runs").output();
    assert!(printed.contains("has 4000 runs that this database does not know"));
}

#[test]
fn a_run_whose_state_does_not_read_once_is_not_lost() {
    let Some((mut lab, run)) = lab_with_a_run(Broker::Embedded, "60s") else {
        return;
    };
    let Some(strace) = strace::Strace::find() else {
        return;
    };
    lab.device.as_mut().expect("it runs").kill();
    let job = lab.state().join("runs").join(&run).join("job.json");
    let faulty = strace.before("env", &[&job], "read:error=EIO:when=1");
    let words = [faulty.get_program()].into_iter().chain(faulty.get_args());
    lab.device_prefix = words.map(|word| word.to_string_lossy().into_owned()).collect();
    lab.start_device();
    assert_complete(&lab, &run);
    assert!(strace.seen().contains("EIO"), "the fault struck");
    let reason = reason(&lab, &run);
    assert!(reason.starts_with("interrupted: "), "{reason}");
}

fn two_agents_with_one_identity(broker: Broker) {
    let Some(mut lab) = Lab::secure(broker) else {
        return;
    };
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();
    drop(lab.device.take());
    let copied = lab.scratch().join("copied-device");
    copy(&lab.device_directory(), &copied);
    lab.start_device();
    let run = request_run(&lab, "5s");
    lab.wait_for_phase(&run, "running");

    let mut command = Command::new(agent());
    command
        .args(["serve", "--config", "agent.toml"])
        .current_dir(&copied);
    let copy = Process::start(&mut command, &copied.join("agent.log"));
    let listed = || lab.json(&["device", "list"])["devices"][0].clone();
    eventually("the coordinator to see two agents", 60, || {
        listed()["duplicated"] == true
    });
    assert_eq!(listed()["online"], false);
    assert_eq!(listed()["health"], "quarantined");
    let shown = succeed_output(lab.regatta().args(["device", "list"]));
    assert!(String::from_utf8_lossy(&shown.stdout).contains("two agents"));
    assert_ne!(lab.phase(&run), "failed", "{}", reason(&lab, &run));

    drop(copy);
    assert_complete(&lab, &run);
    assert_eq!(lab.phase(&run), "done");
    assert_eq!(
        (&listed()["duplicated"], &listed()["online"]),
        (&false.into(), &true.into())
    );
    // Nothing shows which of the two is the device, so an operator decides.
    assert_eq!(listed()["health"], "quarantined");
    let cleared = lab.json(&["device", "clear", DEVICE]);
    assert_eq!(cleared["health"], "good", "{cleared:#}");
}

#[test]
fn two_agents_with_one_identity_are_both_set_aside_over_the_embedded_broker() {
    two_agents_with_one_identity(Broker::Embedded);
}

#[test]
fn two_agents_with_one_identity_are_both_set_aside_over_mosquitto() {
    two_agents_with_one_identity(Broker::Mosquitto);
}

/// Raises the number of the device's newest command, as if its coordinator's clock had been far ahead.
fn raise_heard_number(lab: &Lab) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock");
    let ahead = now.as_micros() + 3_600_000_000;
    fs::write(lab.state().join("commands.number"), ahead.to_string()).expect("the number");
}

#[test]
fn a_restored_store_whose_clock_is_behind_gets_again_what_was_delivered() {
    let Some(mut lab) = Lab::secure(Broker::Embedded) else {
        return;
    };
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();
    let run = request_run(&lab, "2s");
    lab.wait_for_phase(&run, "running");
    drop(lab.coordinator.take());
    let copied = lab.scratch().join("copied-workspace");
    copy(&lab.workspace(), &copied);
    lab.start_coordinator();
    assert_complete(&lab, &run);

    drop(lab.coordinator.take());
    drop(lab.device.take());
    raise_heard_number(&lab);
    fs::remove_dir_all(lab.workspace()).expect("the workspace goes");
    fs::rename(&copied, lab.workspace()).expect("the copy takes its place");
    lab.start_device();
    lab.start_coordinator();
    assert_complete(&lab, &run);
    assert_eq!(lab.phase(&run), "done");
    let next = request_run(&lab, "500ms");
    assert_complete(&lab, &next);
    assert_eq!(lab.json(&["device", "list"])["devices"][0]["name"], DEVICE);
}

/// A copy of the workspace from before the run was requested knows nothing of it. The device keeps it.
#[test]
fn a_run_that_a_restored_workspace_does_not_know_is_named_and_can_be_taken() {
    let Some(mut lab) = Lab::secure(Broker::Embedded) else {
        return;
    };
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();
    drop(lab.coordinator.take());
    let copied = lab.scratch().join("copied-workspace");
    copy(&lab.workspace(), &copied);
    lab.start_coordinator();
    lab.wait_for_device();
    let run = request_run(&lab, "1s");
    assert_complete(&lab, &run);
    drop(lab.coordinator.take());
    fs::remove_dir_all(lab.workspace()).expect("the workspace goes");
    fs::rename(&copied, lab.workspace()).expect("the copy takes its place");
    lab.start_coordinator();
    eventually("the status to name the run", 60, || {
        let status = lab.regatta().args(["status", "--format", "json"]).output();
        let status: serde_json::Value =
            serde_json::from_slice(&status.expect("regatta starts").stdout).expect("JSON");
        status["attention"]
            .as_array()
            .expect("a list")
            .iter()
            .any(|found| {
                let found = found.as_str().unwrap_or_default();
                found.contains(&format!(
                    "{DEVICE} has 1 run that this workspace does not know ({run})"
                )) && found.contains("regatta runs rebuild")
            })
    });
    drop(lab.coordinator.take());
    let spec = Path::new("runs").join(&run).join("spec.json");
    let place = lab.workspace().join("runs").join(&run);
    fs::create_dir_all(&place).expect("a directory");
    fs::copy(lab.state().join(spec), place.join("spec.json")).expect("the device has its spec");
    let _ = succeed_output(lab.regatta().args(["runs", "rebuild"]));
    lab.start_coordinator();
    assert_complete(&lab, &run);
    let status = lab.json(&["device", "list"]);
    assert_eq!(status["devices"][0]["name"], DEVICE);
}

/// Files that this workstation has lost before their record was made are requested again too.
#[test]
fn a_delivered_file_that_is_gone_before_the_record_is_made_comes_again() {
    let Some(mut lab) = Lab::new(Broker::Embedded) else {
        return;
    };
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();
    let run = request_run(&lab, "500ms");
    assert_complete(&lab, &run);
    drop(lab.coordinator.take());
    let store = rusqlite::Connection::open(lab.workspace().join("regatta.db")).expect("the store opens");
    store
        .execute("UPDATE runs SET recorded = NULL, outcome = NULL", [])
        .expect("as before the record");
    drop(store);
    let files = lab.workspace().join("runs").join(&run).join("files");
    fs::remove_file(files.join("mlperf_log_detail.txt")).expect("it goes");
    fs::write(files.join("mlperf_log_summary.txt"), "another").expect("it changes");
    lab.start_coordinator();
    assert_complete(&lab, &run);
}
