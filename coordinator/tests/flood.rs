//! Long logs of several devices at once: everything arrives, and the coordinator's memory stays bounded by its windows,
//! not by what is sent.

#![expect(clippy::unwrap_used, reason = "test code")]

mod support;

use std::time::Instant;

use regatta_rules::documents::RunPhase;
use support::{Dice, coordinator::Coordinator, device::SimulatedDevice, eventually, mosquitto::Mosquitto};

const DEVICES: u8 = 4;
const BYTES: usize = 48 << 20;
/// Four times what an agent sends ahead: these devices push.
const WINDOW: usize = 8 << 20;

fn several_devices_pour(mut coordinator: Coordinator) {
    coordinator.serve();
    let content = Dice::new(11).bytes(BYTES);
    let devices: Vec<_> = (1..=DEVICES)
        .map(|seed| {
            let device = SimulatedDevice::connect(coordinator.port, seed);
            device.say_hello(Vec::new());
            device
        })
        .collect();
    let known = || {
        coordinator.json(&["device", "list"])["devices"]
            .as_array()
            .map(Vec::len)
    };
    eventually("the devices", || {
        (known() == Some(usize::from(DEVICES))).then_some(())
    });
    for device in &devices {
        let id = device.id.as_str();
        let words = [
            "run",
            "--device",
            id,
            "--benchmark",
            "digits",
            "--scenario",
            "Offline",
            "--engine",
            "null",
        ];
        assert!(
            coordinator
                .regatta(&words)
                .arg("--no-wait")
                .status()
                .unwrap()
                .success()
        );
    }
    let before = coordinator.peak_memory();
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for mut device in devices {
            let content = &content;
            scope.spawn(move || {
                let (run, _) = device.next_start();
                device.tell(run, RunPhase::Running, &[]);
                let repeats = device.pour(run, "log", content, WINDOW);
                println!("a device had to repeat {repeats} times");
            });
        }
    });
    let seconds = begun.elapsed().as_secs_f64();
    let grown = coordinator.peak_memory().saturating_sub(before) >> 20;
    let megabytes = f64::from(DEVICES) * BYTES as f64 / 1e6;
    println!(
        "{megabytes:.0} MB in {seconds:.1} s: {:.0} MB/s; memory grew by {grown} MiB",
        megabytes / seconds
    );
    for run in coordinator.json(&["runs", "list"])["runs"].as_array().unwrap() {
        let arrived = coordinator.file(run["run"].as_str().unwrap(), "log").unwrap();
        assert!(arrived == content, "every byte is the device's");
    }
    // The link's window, the broker's queue for the coordinator and a batch: 16 + 64 + 4 MiB and their overhead.
    assert!(grown < 192, "memory grew by {grown} MiB");
}

#[test]
fn several_devices_pour_through_the_embedded_broker() {
    several_devices_pour(Coordinator::embedded());
}

#[test]
fn several_devices_pour_through_mosquitto() {
    let Some(mosquitto) = Mosquitto::start() else {
        return;
    };
    several_devices_pour(Coordinator::external(mosquitto.port));
}
