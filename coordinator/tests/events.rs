//! Tests of `regatta events` over the real coordinator: each change is printed as it happens.

#![expect(clippy::unwrap_used, reason = "test code")]

mod support;

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, ChildStdout, Stdio},
};

use serde_json::Value;
use support::coordinator::Coordinator;

/// A running `regatta events`.
struct Events {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Events {
    fn of(coordinator: &Coordinator, args: &[&str]) -> Self {
        let mut command = coordinator.regatta(&["events"]);
        let mut child = command.args(args).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.lines.read_line(&mut line).unwrap() > 0, "no more events");
        line.trim_end().to_owned()
    }

    /// Reads until an event has this value in a field, and returns it.
    fn until(&mut self, kind: &str, field: &str, value: &str) -> Value {
        loop {
            let event: Value = serde_json::from_str(&self.line()).unwrap();
            if event["event"] == kind && event[field] == value {
                return event;
            }
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn changes_of_devices_and_runs_are_printed_as_they_happen() {
    // The command reads the store, with and without a coordinator that serves.
    let coordinator = Coordinator::with_a_known_device();
    let mut events = Events::of(&coordinator, &["--current", "--format", "json"]);
    let present = events.until("device", "health", "good");
    assert!(
        present["name"].is_string() && present["facts"].is_null() && present["time"].is_string(),
        "{present}"
    );
    let device = present["device"].as_str().unwrap();
    let run = coordinator.request_run("PerformanceOnly");
    let queued = events.until("run", "phase", "queued");
    assert_eq!(
        (&queued["run"], &queued["benchmark"]),
        (&run.as_str().into(), &"digits".into())
    );
    coordinator.json(&["device", "drain", device]);
    assert_eq!(events.until("device", "health", "maintenance")["device"], device);
    coordinator.json(&["runs", "abort", &run]);
    assert_eq!(events.until("run", "phase", "aborted")["run"], run.as_str());

    let mut text = Events::of(&coordinator, &["--current"]);
    let line = text.line();
    assert!(line.ends_with(", maintenance"), "{line}");
}

#[test]
fn a_reader_that_leaves_ends_the_command() {
    let mut coordinator = Coordinator::embedded();
    coordinator.serve();
    let _device = coordinator.join(1);
    let mut events = Events::of(&coordinator, &["--current"]);
    let _ = events.line();
    let (unread, writer) = std::io::pipe().unwrap();
    events.lines = BufReader::new(ChildStdout::from(std::os::fd::OwnedFd::from(unread)));
    drop(writer);
    coordinator.request_run("PerformanceOnly");
    assert!(events.child.wait().unwrap().success());
}

#[test]
fn a_run_is_shown_until_it_is_over() {
    let coordinator = Coordinator::with_a_known_device();
    let run = coordinator.request_run("PerformanceOnly");
    // Without a coordinator the wait ends at once, and the reason is printed.
    let output = coordinator.output(&["runs", "show", &run, "--watch"]);
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.code() == Some(3) && printed.contains("the coordinator has ended"),
        "{printed}"
    );
    coordinator.json(&["runs", "abort", &run]);
    let shown = coordinator.json(&["runs", "show", &run, "--watch"]);
    assert_eq!(shown["phase"], "aborted", "{shown}");
}
