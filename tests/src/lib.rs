//! What the end-to-end tests share: the real binaries, a real mosquitto, a lab of coordinator and agent on loopback.
//! Holds no test of its own, and knows nothing of what is inside the binaries.

// Test code says what it expects.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "this package is test code throughout"
)]

mod binaries;
pub mod certificates;
pub mod deploy_lab;
mod finished_run;
mod lab;
mod lab_commands;
mod mosquitto;
mod process;
pub mod raw_client;
pub mod sshd;
pub mod statistics;
pub mod terminal;

pub use binaries::{agent, build_release_binaries, regatta};
pub use finished_run::{LARGE_LOG, write_accuracy_log};
pub use lab::{Broker, DEVICE, Lab, prefixed, succeed_output};
pub use mosquitto::Mosquitto;
pub use process::Process;
pub use regatta_test_support::{eventually, free_port};

/// All that a command has said: its output, then its errors.
#[must_use]
pub fn printed(output: &std::process::Output) -> String {
    [&output.stdout, &output.stderr]
        .map(|stream| String::from_utf8_lossy(stream))
        .concat()
}

/// Says why a test does nothing here, or fails where nothing may be left out (`CI=true`).
///
/// # Panics
/// Under CI.
pub fn left_out(why: &str) {
    assert!(
        std::env::var_os("CI").is_none_or(|value| value != "true"),
        "CI leaves nothing out: {why}"
    );
    println!("left out: {why}");
}
