//! Tests of delivery: complete, exact and with bounded memory, whatever the acknowledgements are.

use std::{fs, time::Instant};

use regatta_types::documents::RunPhase;
use regatta_wire::message::Command;

use crate::{
    agent::{Agent, noise},
    coordinator::Coordinator,
    eventually,
    mosquitto::Mosquitto,
};

#[test]
fn files_of_every_size_arrive_exactly() {
    let Some(broker) = Mosquitto::start() else { return };
    let mut agent = Agent::start(broker.port);
    agent.stop();
    let sizes = [0, 1, 65_535, 65_536, 65_537, 3 << 20];
    let files: Vec<(String, Vec<u8>)> = sizes
        .iter()
        .map(|&n| (format!("file-{n}.txt"), noise(n)))
        .collect();
    let borrowed: Vec<(&str, &[u8])> = files
        .iter()
        .map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
        .collect();
    let run = agent.lay_down_interrupted_run(&borrowed);
    let coordinator = Coordinator::start(broker.port, &agent.device);
    agent.launch();
    let report = coordinator.wait_for(run, RunPhase::Failed, 20);
    assert_eq!(
        report.state.reason.as_deref(),
        Some("interrupted: the agent died or the device restarted while the run was running")
    );
    let streams = coordinator.wait_for_streams(run, 20);
    for (name, bytes) in &files {
        assert!(streams[name] == *bytes, "{name} differs");
    }
    assert!(streams.contains_key("evidence.json") && streams.contains_key("evidence.sig"));
    coordinator.command(run, &Command::Forget);
    eventually("the daemon to refuse what was not released", 10, || {
        agent.log().contains("not removed").then_some(())
    });
    coordinator.command(run, &Command::Release);
    coordinator.command(run, &Command::Forget);
    eventually("the run to be forgotten", 10, || {
        (!agent.run_dir(run).exists()).then_some(())
    });
    eventually("its state to be cleared", 10, || {
        coordinator.known().cleared.contains(&run).then_some(())
    });
}

#[test]
fn repeated_acknowledgements_change_nothing() {
    let Some(broker) = Mosquitto::start() else { return };
    let mut agent = Agent::start(broker.port);
    agent.stop();
    let big = noise(5_000_001);
    let run = agent.lay_down_interrupted_run(&[("mlperf_log_accuracy.json", &big), ("run.log", b"x")]);
    let coordinator = Coordinator::start(broker.port, &agent.device);
    coordinator.known().twice = true;
    coordinator.known().doubts = 2;
    agent.launch();
    coordinator.wait_for(run, RunPhase::Failed, 20);
    let streams = coordinator.wait_for_streams(run, 60);
    assert!(streams["mlperf_log_accuracy.json"] == big);
    assert_eq!(coordinator.known().doubts, 0);
}

#[test]
fn undelivered_runs_are_kept_on_the_device() {
    let Some(broker) = Mosquitto::start() else { return };
    let mut agent = Agent::start(broker.port);
    agent.stop();
    let run = agent.lay_down_interrupted_run(&[("run.log", b"the only copy")]);
    let coordinator = Coordinator::start(broker.port, &agent.device);
    coordinator.known().silent = true;
    agent.launch();
    coordinator.wait_for(run, RunPhase::Failed, 20);
    coordinator.command(run, &Command::Release);
    coordinator.command(run, &Command::Forget);
    eventually("the daemon to refuse", 10, || {
        agent.log().contains("not removed").then_some(())
    });
    coordinator.known().silent = false;
    let streams = coordinator.wait_for_streams(run, 30);
    assert_eq!(streams["run.log"], b"the only copy");
}

#[test]
fn two_hundred_megabytes_take_little_memory() {
    let Some(broker) = Mosquitto::start() else { return };
    let mut agent = Agent::start(broker.port);
    agent.stop();
    let big = noise(200_000_000);
    let run = agent.lay_down_interrupted_run(&[("mlperf_log_accuracy.json", &big)]);
    let coordinator = Coordinator::start(broker.port, &agent.device);
    agent.launch();
    coordinator.wait_for(run, RunPhase::Failed, 60);
    let begin = Instant::now();
    let streams = coordinator.wait_for_streams(run, 300);
    assert!(streams["mlperf_log_accuracy.json"] == big);
    println!("200 MB in {:.1} s", begin.elapsed().as_secs_f64());
    if let Some(peak) = agent.peak_rss_kib() {
        println!("the daemon's peak RSS {peak} KiB");
        // More than half are pages of the unoptimised program; `tools/lean` measures the release build.
        assert!(peak < 32 * 1024, "peak RSS {peak} KiB");
    }
    assert!(
        fs::metadata(agent.run_dir(run).join("outbox.journal"))
            .unwrap()
            .len()
            < 16 * 1024
    );
}
