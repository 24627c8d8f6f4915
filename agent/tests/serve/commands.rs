//! Commands: refused with a reason, idempotent, harmless when broken.

use regatta_rules::{RunId, documents::RunPhase};
use regatta_wire::{
    message::{Command, Message as _},
    topic::Leaf,
};

use crate::{
    agent::{Agent, noise},
    coordinator::Coordinator,
    mosquitto::Mosquitto,
};

fn reason_of(coordinator: &Coordinator, run: RunId, phase: RunPhase) -> String {
    coordinator.wait_for(run, phase, 20).state.reason.unwrap()
}

#[test]
fn what_cannot_be_a_run_of_this_device_fails_with_a_reason() {
    let Some(broker) = Mosquitto::start() else { return };
    let agent = Agent::start(broker.port);
    let coordinator = Coordinator::start(broker.port, &agent.device);
    let mut reasons = Vec::new();
    let mut refused = |change: &dyn Fn(&mut regatta_rules::documents::RunSpec)| {
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
        "the device cannot read the command: frame has wire version 7; this program speaks 1 to 1"
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
    // Its start, late, finds it aborted.
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
fn a_full_spool_takes_no_run_until_a_delivered_one_makes_room() {
    let Some(broker) = Mosquitto::start() else { return };
    let mut agent = Agent::start_with(broker.port, "min_free_mib = 1\nspool_max_mib = 5");
    agent.stop();
    let old = agent.lay_down_interrupted_run(&[("mlperf_log_accuracy.json", &noise(5 << 20))]);
    let coordinator = Coordinator::start(broker.port, &agent.device);
    agent.launch();
    coordinator.wait_for(old, RunPhase::Failed, 20);
    coordinator.wait_for_streams(old, 30);
    // Just delivered: it stays, for the coordinator may not have recorded it.
    let refused = agent.spec(300);
    coordinator.start_run(&refused);
    let reason = reason_of(&coordinator, refused.run, RunPhase::Failed);
    assert_eq!(
        reason,
        "the device cannot keep the run: logs of other runs take up 5 MiB of 5 (spool_max_mib), and 1 MiB are wanted \
         (min_free_mib)"
    );
    let job = std::fs::File::options()
        .write(true)
        .open(agent.run_dir(old).join("job.json"))
        .unwrap();
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3_600);
    job.set_modified(long_ago).unwrap();
    let taken = agent.spec(300);
    coordinator.start_run(&taken);
    coordinator.wait_for(taken.run, RunPhase::Done, 30);
    assert!(!agent.run_dir(old).exists() && agent.run_dir(taken.run).exists());
}

#[test]
fn a_run_that_finds_no_room_is_not_taken() {
    let Some(broker) = Mosquitto::start() else { return };
    let agent = Agent::start_with(broker.port, "min_free_mib = 1_000_000_000");
    let coordinator = Coordinator::start(broker.port, &agent.device);
    let spec = agent.spec(1_000);
    coordinator.start_run(&spec);
    let reason = reason_of(&coordinator, spec.run, RunPhase::Failed);
    assert!(reason.starts_with("the device cannot keep the run: "), "{reason}");
    assert!(
        reason.ends_with("1000000000 MiB are wanted (min_free_mib)"),
        "{reason}"
    );
}
