//! Tests of the daemon from outside: the real binary over a real mosquitto, with a minimal coordinator. Faults are real: SIGKILL
//! to daemon, run process and broker at inconvenient moments.

// Tests state what they expect.
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
mod log_file;
mod model_server;
mod release;
mod runs;
mod silence;
mod start;
mod state;
mod supervisor;

use std::time::{Duration, Instant};

use regatta_test_support::mosquitto;

/// Waits for an effect of another process.
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
