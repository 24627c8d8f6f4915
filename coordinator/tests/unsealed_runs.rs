//! Tests of a run whose files its device cannot flush: it counts against the device at once, the user sees why nothing ends, and its limit
//! applies.

#![expect(clippy::unwrap_used, reason = "test code")]

mod support;

use std::{
    collections::BTreeMap,
    fs::File,
    process::{Child, Stdio},
};

use regatta_types::{
    RunId,
    documents::{RunPhase, RunState},
};
use regatta_wire::{
    message::{Message as _, StateReport},
    topic::Leaf,
};
use serde_json::Value;
use support::{Dice, coordinator::Coordinator, delivering::Faults, device::SimulatedDevice, eventually};

const REASON: &str = "the run could not be sealed: mlperf_log_detail.txt cannot be flushed to disk: Input/output error (os error 5)";
const FILES: [&str; 3] = ["run.log", "evidence.json", "evidence.sig"];

/// Publishes the state of a run that the device could not seal.
fn tell_unsealed(device: &SimulatedDevice, run: RunId, revision: u64) {
    let state = RunState {
        phase: RunPhase::Failed,
        reason: Some(REASON.to_owned()),
        revision,
    };
    let streams = FILES.iter().map(|name| name.parse().unwrap()).collect();
    let report = StateReport { run, state, streams };
    device.say(Leaf::State(run), report.to_frame().unwrap(), true);
}

/// Starts a command that waits for its run.
fn waiting_run(coordinator: &Coordinator, words: &[&str], output: &File) -> Child {
    let request = "run --benchmark digits --scenario Offline --engine null";
    let mut command = coordinator.regatta(&request.split(' ').collect::<Vec<_>>());
    command
        .args(words)
        .stdout(Stdio::null())
        .stderr(output.try_clone().unwrap())
        .spawn()
        .unwrap()
}

fn health(coordinator: &Coordinator) -> Value {
    coordinator.json(&["device", "list"])["devices"][0]["health"].clone()
}

#[test]
fn a_run_that_its_device_cannot_seal_counts_at_once_and_is_named_everywhere() {
    let mut coordinator = Coordinator::embedded();
    coordinator.serve();
    let mut device = coordinator.join(1);
    let output = coordinator.path("output");
    let mut waiting = waiting_run(&coordinator, &[], &File::create(&output).unwrap());
    let (id, spec_json) = device.next_start();
    device.tell(id, RunPhase::Running, &[]);
    tell_unsealed(&device, id, 50);
    eventually("the device to be suspect", 20, || {
        (health(&coordinator) == "suspect").then_some(())
    });
    eventually("the command to say it", 20, || {
        let text = std::fs::read_to_string(&output).unwrap();
        (text.contains("Input/output error") && text.contains("the device tries again")).then_some(())
    });
    let status = coordinator.output(&["status", "--format", "json"]);
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    let attention = status["attention"].to_string();
    assert!(
        attention.contains(&format!("cannot seal run {id} and tries again")),
        "{attention}"
    );
    // The disk is good again.
    let mut files = BTreeMap::from([("run.log".to_owned(), b"one line\n".to_vec())]);
    device.seal_as((RunPhase::Failed, Some(REASON)), id, &spec_json, &mut files);
    device.deliver(id, &files, Faults::default(), &mut Dice::new(3), |_| {});
    tell_unsealed(&device, id, 51);
    assert_eq!(waiting.wait().unwrap().code(), Some(1));
    let run = id.to_string();
    assert_eq!(coordinator.record(&run)["state"]["phase"], "failed");
    assert_eq!(coordinator.show(&run)["cause"], "device");
    let shown = coordinator.json(&["device", "show", device.id.as_str()]);
    assert_eq!(health(&coordinator), "suspect", "it counts once: {shown:#}");
}

#[test]
fn a_run_that_its_device_cannot_seal_ends_at_its_limit() {
    let mut coordinator = Coordinator::embedded();
    coordinator.serve();
    let mut device = coordinator.join(1);
    let output = coordinator.path("output");
    let limit = ["--limit", "5s", "--duration", "1s"];
    let mut waiting = waiting_run(&coordinator, &limit, &File::create(&output).unwrap());
    let (id, _) = device.next_start();
    device.tell(id, RunPhase::Running, &[]);
    tell_unsealed(&device, id, 50);
    let ended = eventually("the command to end", 60, || waiting.try_wait().unwrap());
    assert_eq!(
        ended.code(),
        Some(1),
        "{}",
        std::fs::read_to_string(&output).unwrap()
    );
    assert_eq!(coordinator.show(&id.to_string())["cause"], "device");
}
