//! Tests of delivery to the real coordinator over both brokers. Whatever is lost, doubled, reordered, flipped or killed, the
//! files are the device's, byte for byte, and the record says so.

mod support;

use std::collections::BTreeMap;

use regatta_types::documents::RunPhase;
use support::{
    Dice, coordinator::Coordinator, delivering::Faults, device::SimulatedDevice, mosquitto::Mosquitto,
};

fn assert_arrived(coordinator: &Coordinator, run: &str, files: &BTreeMap<String, Vec<u8>>) {
    let record = coordinator.record(run);
    assert_eq!(record["delivery"]["complete"], true, "{record:#}");
    assert_eq!(record["evidence_signature_valid"], true, "{record:#}");
    assert_eq!(record["state"]["phase"], "done");
    for (name, content) in files {
        assert_eq!(coordinator.file(run, name).as_ref(), Some(content), "{name}");
    }
    let bytes: usize = files.values().map(Vec::len).sum();
    assert_eq!(record["delivery"]["bytes"], bytes);
    assert_eq!(coordinator.show(run)["phase"], "done");
}

fn everything_goes_wrong_on_the_way(mut coordinator: Coordinator) {
    coordinator.serve();
    let mut device = SimulatedDevice::connect(coordinator.port, 1);
    device.say_hello(Vec::new());
    support::eventually("the device", 30, || {
        coordinator.json(&["device", "list"])["devices"][0]["online"].as_bool()
    });
    for seed in 1..4 {
        let run = coordinator.request_run("PerformanceOnly");
        let (played, files) = device.play(Faults::ALL, &mut Dice::new(seed));
        assert_eq!(played.to_string(), run);
        assert_arrived(&coordinator, &run, &files);
    }
}

#[test]
fn delivery_survives_faults_via_the_embedded_broker() {
    everything_goes_wrong_on_the_way(Coordinator::embedded());
}

#[test]
fn delivery_survives_faults_via_mosquitto() {
    let Some(mosquitto) = Mosquitto::start() else {
        return;
    };
    everything_goes_wrong_on_the_way(Coordinator::external(mosquitto.port));
}

/// Delivers one run with an occasional `fault`, and checks that it arrived.
fn one_run_under(mut coordinator: Coordinator, mut fault: impl FnMut(u64, &mut Coordinator)) {
    coordinator.serve();
    let mut device = SimulatedDevice::connect(coordinator.port, 2);
    device.say_hello(Vec::new());
    support::eventually("the device", 30, || {
        coordinator.json(&["device", "list"])["devices"][0]["online"].as_bool()
    });
    let requested = coordinator.request_run("PerformanceOnly");
    let mut dice = Dice::new(7);
    let (run, spec_json) = device.next_start();
    let mut files = BTreeMap::from([("mlperf_log_detail.txt".to_owned(), dice.bytes(900_000))]);
    device.seal(run, &spec_json, &mut files);
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    device.tell(run, RunPhase::Draining, &names);
    device.deliver(
        run,
        &files,
        Faults {
            lose: 8,
            ..Faults::default()
        },
        &mut dice,
        |round| {
            fault(round, &mut coordinator);
        },
    );
    // The state may have been lost with a broker; a device repeats it.
    device.say_hello(vec![run]);
    device.tell(run, RunPhase::Done, &names);
    assert_arrived(&coordinator, &requested, &files);
}

#[test]
fn a_coordinator_killed_in_the_middle_goes_on_where_it_was() {
    let mut kills = 0;
    one_run_under(Coordinator::embedded(), |round, coordinator| {
        if round % 3 == 2 && kills < 4 {
            coordinator.kill();
            coordinator.serve();
            kills += 1;
        }
    });
}

#[test]
fn a_broker_killed_in_the_middle_takes_nothing_with_it() {
    let Some(mut mosquitto) = Mosquitto::start() else {
        return;
    };
    let mut kills = 0;
    one_run_under(Coordinator::external(mosquitto.port), |round, _| {
        if round % 3 == 2 && kills < 3 {
            mosquitto.restart();
            kills += 1;
        }
    });
}

/// Fails where the device's client does not read while it has data to send.
#[test]
fn a_device_that_never_stops_sending_hears_its_acknowledgements() {
    let mut coordinator = Coordinator::embedded();
    coordinator.serve();
    let device = SimulatedDevice::connect(coordinator.port, 3);
    device.say_hello(Vec::new());
    support::eventually("the device", 30, || {
        coordinator.json(&["device", "list"])["devices"][0]["online"].as_bool()
    });
    let _ = coordinator.request_run("PerformanceOnly");
    let (run, _) = device.next_start();
    // By default, the client reads only after the 65,535 messages that MQTT allows it to send ahead.
    for sent in 0.. {
        if device.has_heard_of(run) {
            return;
        }
        assert!(sent < 20_000, "not a word after {sent} messages");
        device.send_chunk(run, "run.log", 0, b"always the same");
    }
}
