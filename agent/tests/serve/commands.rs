//! Tests of commands: refusals with a reason, repeated ones and damaged ones.

use regatta_types::{RunId, documents::RunPhase};
use regatta_wire::{
    message::{Command, Message as _},
    topic::Leaf,
};

use crate::{agent::Agent, coordinator::Coordinator, mosquitto::Mosquitto};

fn reason_of(coordinator: &Coordinator, run: RunId, phase: RunPhase) -> String {
    coordinator.wait_for(run, phase, 20).state.reason.unwrap()
}

#[test]
fn invalid_start_commands_fail_with_a_reason() {
    let Some(broker) = Mosquitto::start() else { return };
    let agent = Agent::start(broker.port);
    let coordinator = Coordinator::start(broker.port, &agent.device);
    let mut reasons = Vec::new();
    let mut refused = |change: &dyn Fn(&mut regatta_types::documents::RunSpec)| {
        let mut spec = agent.spec(1_000);
        let run = spec.run;
        change(&mut spec);
        let spec_json = serde_json::to_vec(&spec).unwrap();
        coordinator.command(run, &Command::Start { spec_json });
        reasons.push(reason_of(&coordinator, run, RunPhase::Failed));
        assert!(!agent.run_dir(run).exists());
    };
    refused(&|spec| spec.device = "f".repeat(32).parse().unwrap());
    refused(&|spec| spec.schema = 99);
    refused(&|spec| spec.benchmark.name = "../../etc".to_owned());
    refused(&|spec| spec.benchmark.model.file = "/etc/shadow".to_owned());
    let run = RunId::now();
    coordinator.command(
        run,
        &Command::Start {
            spec_json: b"{ \"schema\": 1, ".to_vec(),
        },
    );
    reasons.push(reason_of(&coordinator, run, RunPhase::Failed));
    insta::assert_snapshot!(reasons.join("\n"));
}

#[test]
fn a_newer_coordinator_hears_both_versions() {
    let Some(broker) = Mosquitto::start() else { return };
    let agent = Agent::start(broker.port);
    let coordinator = Coordinator::start(broker.port, &agent.device);
    let run = RunId::now();
    let mut frame = Command::Forget.to_frame().unwrap();
    frame[4] = 7;
    coordinator.publish(Leaf::Command(run), frame);
    assert_eq!(
        reason_of(&coordinator, run, RunPhase::Failed),
        "the device cannot read the command: frame has wire version 7; this program reads 1 to 1"
    );
}

#[test]
fn broken_messages_are_dropped_and_the_daemon_lives() {
    let Some(broker) = Mosquitto::start() else { return };
    let agent = Agent::start(broker.port);
    let coordinator = Coordinator::start(broker.port, &agent.device);
    let run = RunId::now();
    for payload in [
        vec![],
        vec![0; 10_000],
        b"RGTA\x01\x00\x03\xff\xff\xff\xff".to_vec(),
        vec![0xff; 200_000],
    ] {
        coordinator.publish(Leaf::Ack(run), payload.clone());
        coordinator.publish(Leaf::Command(RunId::now()), payload);
    }
    coordinator.command(
        run,
        &Command::Abort {
            reason: "before it came".to_owned(),
        },
    );
    assert_eq!(reason_of(&coordinator, run, RunPhase::Aborted), "before it came");
    // A late start finds the run aborted.
    coordinator.known().states.clear();
    coordinator.command(
        run,
        &Command::Start {
            spec_json: Vec::new(),
        },
    );
    assert_eq!(reason_of(&coordinator, run, RunPhase::Aborted), "before it came");
}

#[test]
fn a_run_without_disk_space_is_refused() {
    let Some(broker) = Mosquitto::start() else { return };
    let agent = Agent::start_with(broker.port, "min_free_mib = 1_000_000_000");
    let coordinator = Coordinator::start(broker.port, &agent.device);
    let spec = agent.spec(1_000);
    coordinator.start_run(&spec);
    let reason = reason_of(&coordinator, spec.run, RunPhase::Failed);
    assert!(reason.starts_with("the device cannot keep the run: "), "{reason}");
    assert!(
        reason.ends_with("1000000000 MiB are needed (min_free_mib)"),
        "{reason}"
    );
}
