//! Runs cross either broker whole: every file on the coordinator's disk is the device's, whatever is killed in between.
//! What a fault campaign does at length stands elsewhere; here each promise is seen once.

#![expect(clippy::expect_used, reason = "test code")]

use std::process::Command;

use regatta_tests::{Broker, Lab, eventually};

/// Asks for one run without waiting for it, and returns its id.
fn ask(lab: &Lab, scenario: &str, mode: &str, duration: &str) -> String {
    lab.ask(&[
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

/// Both sides hold the same files with the same bytes, and the four logs are among them.
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
    let run = ask(&lab, "Offline", "AccuracyOnly", "1s");
    lab.wait_for_phase(&run, "done");
    assert_equal_on_both_sides(&lab, &run);
    let accuracy = lab.show(&run)["accuracy"]["value"].as_f64().expect("an accuracy");
    assert!(accuracy > 95.0, "digits reaches its accuracy: {accuracy}");
}

#[test]
fn a_run_arrives_whole_over_the_embedded_broker() {
    a_run_arrives_whole(Broker::Embedded);
}

#[test]
fn a_run_arrives_whole_over_mosquitto() {
    a_run_arrives_whole(Broker::Mosquitto);
}

#[test]
fn a_run_asked_for_while_nobody_is_there_is_run_and_delivered_later() {
    let Some(mut lab) = Lab::new(Broker::Embedded) else {
        return;
    };
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();
    drop(lab.device.take());
    let run = ask(&lab, "SingleStream", "PerformanceOnly", "500ms");
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
    let run = ask(&lab, "SingleStream", "PerformanceOnly", "3s");
    lab.wait_for_phase(&run, "running");
    lab.coordinator.as_mut().expect("it runs").kill();
    std::thread::sleep(std::time::Duration::from_secs(4));
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
    let run = ask(&lab, "SingleStream", "PerformanceOnly", "2s");
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
    let killed = ask(&lab, "SingleStream", "PerformanceOnly", "30s");
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

    let next = ask(&lab, "Offline", "AccuracyOnly", "1s");
    lab.wait_for_phase(&next, "done");
    assert_equal_on_both_sides(&lab, &next);
}
