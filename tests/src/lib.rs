//! The shared parts of the end-to-end tests: the real binaries, a real mosquitto, and a lab of coordinator and agent on loopback. It has
//! no tests, and does not know the internals of the binaries.

// Test code may panic on an unmet expectation.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "this package is test code throughout"
)]

mod binaries;
pub mod browser_client;
pub mod certificates;
pub mod chromium;
pub mod deploy_lab;
pub mod detection_way;
pub mod detections;
pub mod faults;
pub mod filled_store;
mod finished_run;
pub mod hostile_texts;
pub mod html_check;
pub mod jpeg;
mod lab;
mod lab_commands;
pub mod mlperf_benchmark;
pub mod network_namespace;
pub mod page_reader;
pub mod postgresql;
mod power_dev;
pub mod power_sessions;
mod process;
pub mod raw_client;
pub mod shell;
pub mod small_llama;
pub mod small_whisper;
pub mod sshd;
pub mod starved;
pub mod statistics;
pub mod terminal;
pub mod transcript;
pub mod whole_way;
pub mod windows;
pub mod wire;

pub use binaries::{agent, build_release_binaries, regatta};
pub use finished_run::{LARGE_LOG, write_accuracy_log};
pub use lab::{Broker, DEVICE, Lab, prefixed, succeed_output};
pub use power_dev::power_dev;
pub use process::Process;
pub use regatta_test_support::json_schema;
pub use regatta_test_support::{eventually, free_port, mosquitto::Mosquitto};

/// Returns a command's standard output followed by its standard error.
#[must_use]
pub fn printed(output: &std::process::Output) -> String {
    [&output.stdout, &output.stderr]
        .map(|stream| String::from_utf8_lossy(stream))
        .concat()
}
