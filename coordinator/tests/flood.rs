//! Tests of long logs of several devices at once. Everything arrives, and the windows bound the coordinator's memory, however
//! slow its disk or store is.

#![expect(clippy::unwrap_used, reason = "test code")]

mod support;

use std::{
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use regatta_types::documents::RunPhase;
use support::{Dice, coordinator::Coordinator, device::SimulatedDevice, eventually, mosquitto::Mosquitto};

const DEVICES: u8 = 4;
const BYTES: usize = 48 << 20;
/// Twice the window of an agent: these devices send too much.
const WINDOW: usize = 16 << 20;

/// A store that is slow to write to, as on a busy disk.
struct SlowStore {
    database: PathBuf,
    over: AtomicBool,
}

impl SlowStore {
    /// Holds the store's write lock until the test ends, and releases it for a moment every second.
    fn hold(&self) {
        let store = rusqlite::Connection::open(&self.database).unwrap();
        store.busy_timeout(Duration::from_secs(30)).unwrap();
        while !self.over.load(Ordering::Relaxed) {
            store.execute_batch("BEGIN IMMEDIATE").unwrap();
            std::thread::sleep(Duration::from_millis(800));
            store.execute_batch("ROLLBACK").unwrap();
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

/// Makes every device send `bytes`, and returns by how many MiB the coordinator's memory grew.
fn several_devices_pour(mut coordinator: Coordinator, bytes: usize, store_is_slow: bool) -> u64 {
    coordinator.serve();
    let content = Dice::new(11).bytes(bytes);
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
    eventually("the devices", 30, || {
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
    let slow = SlowStore {
        database: coordinator.path("regatta.db"),
        over: AtomicBool::new(false),
    };
    std::thread::scope(|scope| {
        if store_is_slow {
            scope.spawn(|| slow.hold());
        }
        let pouring: Vec<_> = devices
            .into_iter()
            .map(|mut device| {
                let content = &content;
                scope.spawn(move || {
                    let (run, _) = device.next_start();
                    device.tell(run, RunPhase::Running, &[]);
                    let repeats = device.pour(run, "log", content, WINDOW);
                    println!("a device had to repeat {repeats} times");
                })
            })
            .collect();
        for device in pouring {
            device.join().unwrap();
        }
        slow.over.store(true, Ordering::Relaxed);
    });
    let seconds = begun.elapsed().as_secs_f64();
    let grown = coordinator.peak_memory().saturating_sub(before) >> 20;
    let megabytes = f64::from(DEVICES) * bytes as f64 / 1e6;
    println!(
        "{megabytes:.0} MB in {seconds:.1} s: {:.0} MB/s; memory grew by {grown} MiB",
        megabytes / seconds
    );
    for run in coordinator.json(&["runs", "list"])["runs"].as_array().unwrap() {
        let arrived = coordinator.file(run["run"].as_str().unwrap(), "log").unwrap();
        assert!(arrived == content, "every byte is the device's");
    }
    grown
}

/// Logs between broker and ingest, twice because the allocator rounds up; and each connection's packet.
const EMBEDDED_MIB: u64 = 64;

#[test]
fn several_devices_pour_through_the_embedded_broker() {
    let grown = several_devices_pour(Coordinator::embedded(), BYTES, false);
    assert!(grown < EMBEDDED_MIB, "memory grew by {grown} MiB");
}

#[test]
fn a_slow_store_holds_the_senders_back_and_memory_stays_bounded() {
    let grown = several_devices_pour(Coordinator::embedded(), BYTES / 2, true);
    assert!(grown < EMBEDDED_MIB, "memory grew by {grown} MiB");
}

#[test]
fn several_devices_pour_through_mosquitto() {
    let Some(mosquitto) = Mosquitto::start() else {
        return;
    };
    let grown = several_devices_pour(Coordinator::external(mosquitto.port), BYTES, false);
    // The link's window of 16 MiB, twice, and its overhead: the rest waits at the broker.
    assert!(grown < 96, "memory grew by {grown} MiB");
}
