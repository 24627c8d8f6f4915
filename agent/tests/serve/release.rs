//! Tests of the permission to remove logs. Acknowledgements, which have no signature, free nothing. A release does, until the
//! coordinator requests files again.

use std::{
    fs::{self, File},
    time::{Duration, SystemTime},
};

use regatta_types::{RunId, documents::RunPhase};
use regatta_wire::message::Command;

use crate::{
    agent::{Agent, noise},
    coordinator::Coordinator,
    eventually,
    mosquitto::Mosquitto,
};

/// Returns a device with a small spool, and a completely acknowledged run on it.
fn acknowledged_run(broker: &Mosquitto) -> (Agent, Coordinator, RunId) {
    let mut agent = Agent::start_with(broker.port, "min_free_mib = 2\nspool_max_mib = 4");
    agent.stop();
    let run = agent.lay_down_interrupted_run(&[("mlperf_log_detail.txt", &noise(3 << 20))]);
    let coordinator = Coordinator::start(broker.port, &agent.device);
    agent.launch();
    coordinator.wait_for(run, RunPhase::Failed, 20);
    coordinator.wait_for_streams(run, 30);
    (agent, coordinator, run)
}

fn streams_of(coordinator: &Coordinator, run: RunId) -> Command {
    let report = coordinator.known().states[&run].last().unwrap().clone();
    Command::Resend {
        streams: report.streams,
    }
}

fn is_released(agent: &Agent, run: RunId) -> bool {
    let job = fs::read(agent.run_dir(run).join("job.json")).unwrap();
    serde_json::from_slice::<serde_json::Value>(&job).unwrap()["released"] == true
}

#[test]
fn only_a_release_frees_disk_space() {
    let Some(broker) = Mosquitto::start() else { return };
    let (agent, coordinator, run) = acknowledged_run(&broker);
    // The clock jumps forward, as when a board without a battery reaches a time server.
    let job = File::open(agent.run_dir(run).join("job.json")).unwrap();
    job.set_modified(SystemTime::now() - Duration::from_secs(86_400))
        .unwrap();

    let refused = agent.spec(100);
    coordinator.start_run(&refused);
    let reason = coordinator
        .wait_for(refused.run, RunPhase::Failed, 20)
        .state
        .reason;
    assert_eq!(
        reason.unwrap(),
        "the device cannot keep the run: logs of other runs take up 3 MiB of 4 (spool_max_mib), and 2 MiB are needed \
         (min_free_mib)"
    );
    assert!(agent.file(run, "mlperf_log_detail.txt").exists());

    coordinator.command(run, &Command::Release);
    let taken = agent.spec(100);
    coordinator.start_run(&taken);
    coordinator.wait_for(taken.run, RunPhase::Done, 60);
    assert!(!agent.run_dir(run).exists(), "the released run made room");
}

#[test]
fn acknowledged_data_is_resent_on_request_also_after_a_crash() {
    let Some(broker) = Mosquitto::start() else { return };
    let (mut agent, coordinator, run) = acknowledged_run(&broker);
    coordinator.command(run, &Command::Release);
    eventually("the release", 20, || is_released(&agent, run).then_some(()));

    // The coordinator's store was restored from an older copy.
    let resend = streams_of(&coordinator, run);
    coordinator.known().streams.clear();
    coordinator.known().silent = true;
    coordinator.command(run, &resend);
    eventually("the release not to count any more", 20, || {
        (!is_released(&agent, run)).then_some(())
    });
    coordinator.command(run, &Command::Forget);
    eventually("the daemon to refuse", 20, || {
        agent.log().contains("not removed").then_some(())
    });
    agent.kill();
    agent.launch();
    coordinator.known().silent = false;
    let streams = coordinator.wait_for_streams(run, 60);
    assert!(streams["mlperf_log_detail.txt"] == fs::read(agent.file(run, "mlperf_log_detail.txt")).unwrap());
}

#[test]
fn the_state_of_a_queried_run_is_published_and_an_unknown_run_is_not_started() {
    let Some(broker) = Mosquitto::start() else { return };
    let (agent, coordinator, run) = acknowledged_run(&broker);
    let resend = Command::Resend { streams: Vec::new() };
    let state_count = || coordinator.known().states[&run].len();
    let before = state_count();
    coordinator.command(run, &resend);
    eventually("the state", 20, || (state_count() > before).then_some(()));
    let before = coordinator.bytes_of(run);

    // The device sends what it has, at most once in ten seconds.
    let unknown = RunId::now();
    let listed = || coordinator.known().inventories.last().unwrap().clone();
    let first = listed();
    assert_eq!(first.runs.iter().map(|held| held.run).collect::<Vec<_>>(), [run]);
    let second = eventually("another inventory", 40, || {
        coordinator.command(unknown, &resend);
        std::thread::sleep(Duration::from_millis(500));
        let last = listed();
        (last.number > first.number).then_some(last)
    });
    assert_eq!((second.session, &second.runs), (first.session, &first.runs));
    assert!(!agent.run_dir(unknown).exists());
    assert_eq!(coordinator.bytes_of(run), before, "nothing was delivered again");
}
