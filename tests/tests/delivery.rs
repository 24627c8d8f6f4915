//! Tests of delivery over both brokers: every file on the coordinator's disk is the device's, whatever is killed in between. Each
//! promise is tested once; the fault campaign repeats them.

#![expect(clippy::expect_used, reason = "test code")]

use std::{fs, path::Path, process::Command, thread::sleep, time::Duration};

use regatta_test_support::strace;
use regatta_tests::{Broker, Lab, eventually};

/// Requests one run without waiting for it, and returns its id.
fn request_run(lab: &Lab, scenario: &str, mode: &str, duration: &str) -> String {
    lab.request_run(&[
        "--engine",
        "tract",
        "--scenario",
        scenario,
        "--mode",
        mode,
        "--duration",
        duration,
    ])
}

/// Checks that both sides have the same files with the same bytes, including the four logs.
fn assert_equal_on_both_sides(lab: &Lab, run: &str) {
    let [coordinator, device] = lab.hashes(run);
    assert_eq!(coordinator, device, "files of run {run}: coordinator, device");
    for file in [
        "mlperf_log_summary.txt",
        "mlperf_log_detail.txt",
        "mlperf_log_accuracy.json",
        "evidence.json",
        "evidence.sig",
    ] {
        assert!(
            coordinator.contains_key(file),
            "{file} was not delivered: {:?}",
            coordinator.keys()
        );
    }
}

fn a_run_arrives_whole(broker: Broker) {
    let Some(mut lab) = Lab::new(broker) else { return };
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();
    let run = request_run(&lab, "Offline", "AccuracyOnly", "1s");
    lab.wait_for_phase(&run, "done");
    assert_equal_on_both_sides(&lab, &run);
    let accuracy = lab.show(&run)["accuracy"]["value"].as_f64().expect("an accuracy");
    assert!(accuracy > 95.0, "digits reaches its accuracy: {accuracy}");
}

#[test]
fn run_is_delivered_completely_via_the_embedded_broker() {
    a_run_arrives_whole(Broker::Embedded);
}

#[test]
fn run_is_delivered_completely_via_mosquitto() {
    a_run_arrives_whole(Broker::Mosquitto);
}

/// Requests a run of a known device that is offline.
fn request_run_while_the_device_is_away(lab: &mut Lab) -> String {
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();
    drop(lab.device.take());
    request_run(lab, "SingleStream", "PerformanceOnly", "500ms")
}

#[test]
fn a_run_requested_while_the_device_is_away_runs_later() {
    let Some(mut lab) = Lab::new(Broker::Embedded) else {
        return;
    };
    let run = request_run_while_the_device_is_away(&mut lab);
    drop(lab.coordinator.take());
    lab.start_device();
    lab.start_coordinator();
    lab.wait_for_phase(&run, "done");
    assert_equal_on_both_sides(&lab, &run);
}

#[test]
fn a_coordinator_that_dies_during_a_run_gets_everything_afterwards() {
    let Some(mut lab) = Lab::new(Broker::Mosquitto) else {
        return;
    };
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();
    let run = request_run(&lab, "SingleStream", "PerformanceOnly", "3s");
    lab.wait_for_phase(&run, "running");
    lab.coordinator.as_mut().expect("it runs").kill();
    sleep(Duration::from_secs(4));
    lab.start_coordinator();
    lab.wait_for_phase(&run, "done");
    assert_equal_on_both_sides(&lab, &run);
}

#[test]
fn a_broker_that_dies_takes_nothing_with_it() {
    let Some(mut lab) = Lab::new(Broker::Mosquitto) else {
        return;
    };
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();
    let run = request_run(&lab, "SingleStream", "PerformanceOnly", "2s");
    lab.wait_for_phase(&run, "running");
    lab.mosquitto.as_mut().expect("this lab has one").restart();
    lab.wait_for_phase(&run, "done");
    assert_equal_on_both_sides(&lab, &run);
}

#[test]
fn a_killed_run_process_fails_with_the_reason_its_log_kept_and_the_next_run_is_fine() {
    let Some(mut lab) = Lab::new(Broker::Embedded) else {
        return;
    };
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();
    let killed = request_run(&lab, "SingleStream", "PerformanceOnly", "30s");
    lab.wait_for_phase(&killed, "running");
    let pattern = format!("exec .*{killed}");
    let status = Command::new("pkill")
        .args(["-KILL", "-f", &pattern])
        .status()
        .expect("pkill is there");
    assert!(status.success(), "a run process was there to kill");
    lab.wait_for_phase(&killed, "failed");
    let reason = lab.show(&killed)["reason"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    assert!(
        reason.contains("signal 9"),
        "the reason names the signal: {reason}"
    );
    eventually("the failed run's files to arrive", 20, || {
        let [coordinator, device] = lab.hashes(&killed);
        coordinator == device && coordinator.contains_key("evidence.sig")
    });

    let next = request_run(&lab, "Offline", "AccuracyOnly", "1s");
    lab.wait_for_phase(&next, "done");
    assert_equal_on_both_sides(&lab, &next);
}

#[test]
fn a_file_that_the_device_cannot_read_once_is_waited_for_and_the_record_holds_it() {
    let Some(mut lab) = Lab::new(Broker::Embedded) else {
        return;
    };
    let Some(strace) = strace::Strace::find() else {
        return;
    };
    let run = request_run_while_the_device_is_away(&mut lab);
    let log = format!("runs/{run}/files/mlperf_log_detail.txt");
    let faulty = strace.before("env", &[&lab.state().join(log)], "read:error=EIO:when=1");
    let words = [faulty.get_program()].into_iter().chain(faulty.get_args());
    lab.device_prefix = words.map(|word| word.to_string_lossy().into_owned()).collect();
    lab.start_device();
    lab.wait_for_phase(&run, "failed");
    let directory = lab.workspace().join("runs").join(&run);
    eventually("what could be read to arrive", 20, || {
        lab.hashes(&run)[0].contains_key("mlperf_log_summary.txt")
    });
    // The finisher looks once a second.
    sleep(Duration::from_millis(1_500));
    let record = directory.join("record.json");
    assert!(!record.exists(), "a record without a file that is still to come");

    drop(lab.device.take());
    lab.device_prefix.clear();
    lab.start_device();
    eventually("the record", 30, || record.exists());
    assert_equal_on_both_sides(&lab, &run);
    let record: serde_json::Value = read_json(&record);
    assert_eq!(record["evidence_signature_valid"], true, "{record}");
    assert_eq!(record["delivery"]["complete"], true, "{record}");
    let evidence = read_json(&directory.join("files/evidence.json"));
    assert_eq!(evidence["outcome"]["phase"], "failed", "{evidence}");
    assert_eq!(
        evidence["outcome"]["reason"], record["state"]["reason"],
        "{evidence}"
    );
}

#[test]
fn evidence_that_could_not_be_signed_once_is_verified_after_the_next_start() {
    let Some(mut lab) = Lab::new(Broker::Embedded) else {
        return;
    };
    let Some(strace) = strace::Strace::find() else {
        return;
    };
    let run = request_run_while_the_device_is_away(&mut lab);
    let signature = lab.state().join(format!("runs/{run}/files/.evidence.sig.new"));
    let faulty = strace.before("env", &[&signature], "write:error=ENOSPC:when=1");
    let words = [faulty.get_program()].into_iter().chain(faulty.get_args());
    lab.device_prefix = words.map(|word| word.to_string_lossy().into_owned()).collect();
    lab.start_device();
    lab.wait_for_phase(&run, "failed");
    eventually("what needs no evidence to arrive", 20, || {
        lab.hashes(&run)[0].contains_key("mlperf_log_summary.txt")
    });
    assert!(
        !lab.hashes(&run)[0].contains_key("evidence.json"),
        "evidence left the device before it was signed"
    );

    drop(lab.device.take());
    lab.device_prefix.clear();
    lab.start_device();
    let record = lab.workspace().join("runs").join(&run).join("record.json");
    eventually("the record", 30, || record.exists());
    assert_equal_on_both_sides(&lab, &run);
    let record = read_json(&record);
    assert_eq!(record["evidence_signature_valid"], true, "{record}");
    assert_eq!(record["delivery"]["complete"], true, "{record}");
}

fn read_json(path: &Path) -> serde_json::Value {
    let text = fs::read(path).expect("the file is there");
    serde_json::from_slice(&text).expect("it is JSON")
}
