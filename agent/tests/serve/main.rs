//! The daemon from outside: the real binary over a real mosquitto, with a small coordinator played by the test. Faults
//! are real ones: SIGKILL to daemon, run process and broker, at awkward moments.

// Test code says what it expects.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "this crate is test code throughout"
)]

mod agent;
mod broken_disk;
mod commands;
mod coordinator;
mod delivery;
mod evidence;
mod faults;
mod full_disk;
mod lean;
mod mosquitto;
mod release;
mod runs;
mod silence;
mod start;
mod state;
mod supervisor;

use std::time::{Duration, Instant};

/// Waits for something that another process does.
fn eventually<T>(what: &str, seconds: u64, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(
            begin.elapsed() < Duration::from_secs(seconds),
            "waited {seconds} s for {what}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}
