//! Tests of verdicts: a broker's messages only count as far as the device's signed evidence agrees.

#![expect(clippy::unwrap_used, reason = "test code")]

mod support;

use std::{collections::BTreeMap, process::Stdio};

use regatta_types::{
    RunId,
    documents::{EngineKind, RunPhase},
};
use regatta_wire::{message::Message as _, topic::Leaf};
use serde_json::Value;
use support::{
    Dice,
    coordinator::Coordinator,
    delivering::{Faults, SUMMARY, VALID},
    device::SimulatedDevice,
    eventually,
};

fn lab() -> (Coordinator, SimulatedDevice) {
    let mut coordinator = Coordinator::embedded();
    coordinator.serve();
    let device = SimulatedDevice::connect(coordinator.port, 1);
    let mut hello = device.hello(Vec::new());
    hello.engines.push(EngineKind::Tract);
    device.say(Leaf::Hello, hello.to_frame().unwrap(), true);
    eventually("the device", 30, || {
        coordinator.json(&["device", "list"])["devices"][0]["online"].as_bool()
    });
    (coordinator, device)
}

/// The files of a run: those that the evidence lists, and changes after it was sealed.
struct Story<'a> {
    signed: (RunPhase, Option<&'a str>),
    reported: RunPhase,
    listed: &'a [(&'a str, &'a [u8])],
    unlisted: &'a [(&'a str, &'a [u8])],
}

impl Story<'_> {
    fn play(&self, device: &mut SimulatedDevice) -> RunId {
        let (run, spec_json) = device.next_start();
        device.tell(run, RunPhase::Running, &[]);
        let owned = |files: &[(&str, &[u8])]| -> BTreeMap<String, Vec<u8>> {
            files
                .iter()
                .map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec()))
                .collect()
        };
        let mut files = owned(self.listed);
        device.seal_as(self.signed, run, &spec_json, &mut files);
        files.extend(owned(self.unlisted));
        let names: Vec<&str> = files.keys().map(String::as_str).collect();
        device.tell(run, RunPhase::Draining, &names);
        // Before the evidence arrives, which ends the run.
        device.tell(run, self.reported, &names);
        device.deliver(run, &files, Faults::default(), &mut Dice::new(3), |_| {});
        run
    }
}

fn says(list: &Value, words: &str) -> bool {
    let lines = list.as_array().into_iter().flatten();
    lines.filter_map(Value::as_str).any(|line| line.contains(words))
}

#[test]
fn the_signed_outcome_counts_and_not_the_reported_state() {
    let (coordinator, mut device) = lab();
    let requested = coordinator.request_run("PerformanceOnly");
    Story {
        signed: (RunPhase::Failed, Some("the engine gave up")),
        reported: RunPhase::Done,
        listed: &[(SUMMARY, VALID)],
        unlisted: &[],
    }
    .play(&mut device);
    let record = coordinator.record(&requested);
    assert_eq!(record["state"]["phase"], "failed", "{record:#}");
    assert_eq!(record["state"]["reason"], "the engine gave up");
    assert!(says(&record["contradictions"], "reported as done"), "{record:#}");
    assert_eq!(coordinator.show(&requested)["phase"], "failed");

    let requested = coordinator.request_run("PerformanceOnly");
    Story {
        signed: (RunPhase::Draining, None),
        reported: RunPhase::Failed,
        listed: &[(SUMMARY, VALID)],
        unlisted: &[],
    }
    .play(&mut device);
    let record = coordinator.record(&requested);
    assert_eq!(record["state"]["phase"], "done", "{record:#}");
    assert_eq!(record["state"]["reason"], Value::Null);
    assert!(
        says(&record["contradictions"], "reported as failed"),
        "{record:#}"
    );
    assert_eq!(
        coordinator.output(&["runs", "verify", &requested]).status.code(),
        Some(0)
    );
}

#[test]
fn logs_that_the_evidence_does_not_list_are_not_judged() {
    let (coordinator, mut device) = lab();
    let requested = coordinator.request_run("PerformanceOnly");
    let story = Story {
        signed: (RunPhase::Draining, None),
        reported: RunPhase::Done,
        listed: &[("run.log", b"nothing")],
        unlisted: &[(SUMMARY, VALID)],
    };
    story.play(&mut device);
    let record = coordinator.record(&requested);
    let shown = coordinator.show(&requested);
    assert_eq!(
        (&shown["valid"], &shown["metric"]),
        (&Value::Null, &Value::Null),
        "{shown:#}"
    );
    assert!(
        says(
            &record["not_judged"],
            "mlperf_log_summary.txt: the signed evidence does not list it"
        ),
        "{record:#}"
    );

    let requested = coordinator.request_run_on("tract", "AccuracyOnly");
    let answers = b"[\n{ \"seq_id\" : 0, \"qsl_idx\" : 0, \"data\" : \"00000000\" }\n]\n";
    Story {
        unlisted: &[("mlperf_log_accuracy.json", answers)],
        ..story
    }
    .play(&mut device);
    let record = coordinator.record(&requested);
    assert!(
        says(
            &record["not_judged"],
            "mlperf_log_accuracy.json: the signed evidence does not list it"
        ),
        "{record:#}"
    );
}

#[test]
fn a_measurement_without_a_verdict_is_not_good() {
    let (coordinator, mut device) = lab();
    for (listed, code, expected) in [
        (
            &[("run.log", b"nothing".as_slice())],
            1,
            "LoadGen gave no verdict",
        ),
        (&[(SUMMARY, VALID)], 0, ""),
    ] {
        let mut command = coordinator.regatta(&[
            "run",
            "--benchmark",
            "digits",
            "--scenario",
            "Offline",
            "--mode",
            "PerformanceOnly",
            "--engine",
            "null",
        ]);
        let waiting = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Story {
            signed: (RunPhase::Draining, None),
            reported: RunPhase::Done,
            listed,
            unlisted: &[],
        }
        .play(&mut device);
        let output = waiting.wait_with_output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(code), "{printed}");
        assert!(printed.contains(expected), "{printed}");
    }
}
