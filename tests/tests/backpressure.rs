//! Tests of the real agent and coordinator with a store that is slow to write. The coordinator slows the device, and no memory
//! grows with the logs.

#![expect(clippy::expect_used, reason = "test code")]

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use regatta_tests::{Broker, LARGE_LOG, Lab, Process, eventually, write_accuracy_log};
use rusqlite::Connection;

const BYTES: u64 = 96 << 20;

/// Holds the store's write lock, and releases it for a moment every second.
struct SlowStore {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl SlowStore {
    fn hold(database: PathBuf) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&over);
        let hold = move || {
            let store = Connection::open(database).expect("the store opens");
            store
                .busy_timeout(Duration::from_secs(30))
                .expect("it can be told to wait");
            while !until.load(Ordering::Relaxed) {
                store.execute_batch("BEGIN IMMEDIATE").expect("the lock is taken");
                std::thread::sleep(Duration::from_millis(1_500));
                store.execute_batch("ROLLBACK").expect("the lock is given back");
                std::thread::sleep(Duration::from_millis(200));
            }
        };
        Self {
            over,
            thread: Some(std::thread::spawn(hold)),
        }
    }
}

impl Drop for SlowStore {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn a_slow_coordinator_slows_the_device(broker: Broker) {
    let Some(mut lab) = Lab::new(broker) else { return };
    let log = lab.workspace().join("the.log");
    write_accuracy_log(&log, BYTES).expect("a large log");
    lab.start_coordinator();
    let run = lab.leave_run(&log);
    let before = peak_mib(lab.coordinator.as_ref());
    let slow = SlowStore::hold(lab.workspace().join("regatta.db"));
    let begin = Instant::now();
    lab.start_device();
    eventually("the log to arrive", 240, || lab.is_whole(&run, LARGE_LOG));
    drop(slow);
    let took = begin.elapsed().as_secs_f64();
    let agent = lab.device.as_ref().expect("it runs").peak_allocated_kib() >> 10;
    let grown = peak_mib(lab.coordinator.as_ref()) - before;
    println!(
        "{broker:?}: {} MiB in {took:.1} s; agent allocated {agent} MiB, coordinator grew by {grown} MiB",
        BYTES >> 20
    );
    let arrived = std::fs::read(lab.delivered(&run, LARGE_LOG)).expect("the log is there");
    assert!(
        arrived == std::fs::read(&log).expect("the log reads"),
        "every byte is the device's"
    );
    assert!(agent < 8, "the agent allocated {agent} MiB");
    assert!(grown <= 64, "the coordinator grew by {grown} MiB");
}

#[test]
fn a_slow_coordinator_slows_the_device_over_the_embedded_broker() {
    a_slow_coordinator_slows_the_device(Broker::Embedded);
}

#[test]
fn a_slow_coordinator_slows_the_device_over_mosquitto() {
    a_slow_coordinator_slows_the_device(Broker::Mosquitto);
}

fn peak_mib(process: Option<&Process>) -> u64 {
    process.expect("it runs").peak_kib() >> 10
}
