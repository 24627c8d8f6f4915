//! Tests of runs of the real run process, from the start to the last delivered byte, and of every early end.

use std::{collections::BTreeMap, fs, thread::sleep, time::Duration};

use regatta_types::{
    RunId,
    documents::{Delivery, Document as _, Evidence, RunPhase},
};
use regatta_wire::message::Command;
use rustix::process::{Signal, kill_process, test_kill_process};

use crate::{
    agent::{Agent, noise, sha256},
    coordinator::Coordinator,
    eventually,
    mosquitto::Mosquitto,
};

fn evidence(streams: &BTreeMap<String, Vec<u8>>) -> Evidence {
    Evidence::from_json(&streams["evidence.json"]).unwrap()
}

/// Returns the reported phases of a run, each once.
fn phases(coordinator: &Coordinator, run: RunId) -> Vec<RunPhase> {
    let mut phases: Vec<RunPhase> = coordinator.known().states[&run]
        .iter()
        .map(|report| report.state.phase)
        .collect();
    phases.dedup();
    phases
}

#[test]
fn run_passes_every_phase_and_is_delivered_completely() {
    let Some(broker) = Mosquitto::start() else { return };
    let agent = Agent::start(broker.port);
    let coordinator = Coordinator::start(broker.port, &agent.device);
    let spec = agent.spec(500);
    let spec_json = coordinator.start_run(&spec);
    coordinator.start_run(&spec);
    coordinator.wait_for(spec.run, RunPhase::Done, 30);
    let streams = coordinator.wait_for_streams(spec.run, 10);
    assert!(streams.contains_key("mlperf_log_detail.txt") && streams.contains_key("attempt.json"));
    for (name, bytes) in &streams {
        assert_eq!(
            sha256(bytes),
            sha256(&fs::read(agent.file(spec.run, name)).unwrap()),
            "{name}"
        );
    }
    let evidence = evidence(&streams);
    assert_eq!(
        evidence.spec_sha256,
        sha256(&spec_json),
        "the exact bytes of the spec"
    );
    assert_eq!(
        (evidence.outcome.phase, evidence.attempts.len()),
        (RunPhase::Draining, 1)
    );
    assert_eq!(evidence.files.len() + 2, streams.len());
    // States in quick succession are reported as one.
    let order = [
        RunPhase::Queued,
        RunPhase::Preparing,
        RunPhase::Ready,
        RunPhase::Running,
        RunPhase::Draining,
        RunPhase::Done,
    ];
    let seen_phases = phases(&coordinator, spec.run);
    assert!(
        seen_phases.is_sorted_by_key(|phase| order.iter().position(|known| known == phase)),
        "{seen_phases:?}"
    );
    assert!(
        seen_phases.contains(&RunPhase::Running) && seen_phases.contains(&RunPhase::Draining),
        "{seen_phases:?}"
    );
    let known = coordinator.known();
    let revisions: Vec<u64> = known.states[&spec.run]
        .iter()
        .map(|report| report.state.revision)
        .collect();
    assert!(revisions.is_sorted(), "{revisions:?}");
}

#[test]
fn a_killed_run_process_fails_its_run_alone() {
    let Some(broker) = Mosquitto::start() else { return };
    let agent = Agent::start(broker.port);
    let coordinator = Coordinator::start(broker.port, &agent.device);
    let (doomed, next) = (agent.spec(60_000), agent.spec(300));
    coordinator.start_run(&doomed);
    coordinator.start_run(&next);
    coordinator.wait_for(doomed.run, RunPhase::Running, 30);
    assert_eq!(
        coordinator.known().states[&next.run].last().unwrap().state.phase,
        RunPhase::Queued
    );
    kill_process(agent.run_process(doomed.run), Signal::KILL).unwrap();
    let report = coordinator.wait_for(doomed.run, RunPhase::Failed, 10);
    assert_eq!(
        report.state.reason.as_deref(),
        Some("the run process was killed by signal 9 (SIGKILL)")
    );
    let streams = coordinator.wait_for_streams(doomed.run, 10);
    assert!(streams.contains_key("run.log") && streams.contains_key("evidence.sig"));
    assert_eq!(evidence(&streams).outcome, report.state);
    coordinator.wait_for(next.run, RunPhase::Done, 30);
}

#[test]
fn a_daemon_killed_while_loadgen_runs_comes_back_to_an_interrupted_run() {
    let Some(broker) = Mosquitto::start() else { return };
    let mut agent = Agent::start(broker.port);
    let coordinator = Coordinator::start(broker.port, &agent.device);
    let spec = agent.spec(60_000);
    coordinator.start_run(&spec);
    coordinator.wait_for(spec.run, RunPhase::Running, 30);
    let process = agent.run_process(spec.run);
    agent.kill();
    agent.launch();
    let report = coordinator.wait_for(spec.run, RunPhase::Failed, 10);
    assert!(report.state.reason.unwrap().starts_with("interrupted: "));
    coordinator.wait_for_streams(spec.run, 10);
    eventually("the run process to be gone", 10, || {
        test_kill_process(process).is_err().then_some(())
    });
}

#[test]
fn an_aborted_run_ends_and_records_who_requested_it() {
    let Some(broker) = Mosquitto::start() else { return };
    let agent = Agent::start(broker.port);
    let coordinator = Coordinator::start(broker.port, &agent.device);
    let (running, queued) = (agent.spec(60_000), agent.spec(60_000));
    coordinator.start_run(&running);
    coordinator.start_run(&queued);
    coordinator.wait_for(running.run, RunPhase::Running, 30);
    for spec in [&queued, &running] {
        coordinator.command(
            spec.run,
            &Command::Abort {
                reason: "the user pressed ^C".to_owned(),
            },
        );
    }
    for spec in [&queued, &running] {
        let report = coordinator.wait_for(spec.run, RunPhase::Aborted, 20);
        assert_eq!(report.state.reason.as_deref(), Some("the user pressed ^C"));
        coordinator.wait_for_streams(spec.run, 10);
    }
}

#[test]
fn sigterm_ends_the_run_and_its_logs_are_kept() {
    let Some(broker) = Mosquitto::start() else { return };
    let mut agent = Agent::start(broker.port);
    let coordinator = Coordinator::start(broker.port, &agent.device);
    let spec = agent.spec(60_000);
    coordinator.start_run(&spec);
    coordinator.wait_for(spec.run, RunPhase::Running, 30);
    let process = agent.run_process(spec.run);
    assert_eq!(agent.stop().code(), Some(0));
    assert!(
        test_kill_process(process).is_err(),
        "no run process outlives a clean stop"
    );
    let report = coordinator.wait_for(spec.run, RunPhase::Failed, 10);
    assert_eq!(
        report.state.reason.as_deref(),
        Some("interrupted: the agent was stopped")
    );
    agent.launch();
    coordinator.wait_for_streams(spec.run, 20);
}

/// Nobody may start the agent again.
#[test]
fn a_killed_agent_leaves_no_run_process() {
    let Some(broker) = Mosquitto::start() else { return };
    let mut agent = Agent::start(broker.port);
    let coordinator = Coordinator::start(broker.port, &agent.device);
    let spec = agent.spec(60_000);
    coordinator.start_run(&spec);
    coordinator.wait_for(spec.run, RunPhase::Running, 30);
    let process = agent.run_process(spec.run);
    agent.kill();
    eventually("the run process to end", 10, || {
        test_kill_process(process).is_err().then_some(())
    });
}

#[test]
fn a_run_goes_on_without_broker_and_is_delivered_later() {
    let Some(mut broker) = Mosquitto::start() else {
        return;
    };
    let agent = Agent::start(broker.port);
    let coordinator = Coordinator::start(broker.port, &agent.device);
    let spec = agent.spec(1_000);
    coordinator.start_run(&spec);
    coordinator.wait_for(spec.run, RunPhase::Running, 30);
    broker.kill();
    eventually("the run to be sealed", 20, || {
        agent.file(spec.run, "evidence.sig").exists().then_some(())
    });
    broker.start_again();
    coordinator.wait_for(spec.run, RunPhase::Done, 30);
}

#[test]
fn in_the_window_the_daemon_sends_heartbeats_alone() {
    let Some(broker) = Mosquitto::start() else { return };
    let mut agent = Agent::start_with(
        broker.port,
        "min_free_mib = 16\ndeliver_first_ms = 0\nheartbeat_ms = 500",
    );
    agent.stop();
    // Logs of another run that are not delivered when the run begins.
    let backlog = agent.lay_down_interrupted_run(&[("mlperf_log_accuracy.json", &noise(100_000_000))]);
    let coordinator = Coordinator::start(broker.port, &agent.device);
    agent.launch();
    eventually("the delivery to begin", 20, || {
        (coordinator.bytes_of(backlog) > 0).then_some(())
    });
    let spec = agent.spec(3_000);
    coordinator.start_run(&spec);
    coordinator.wait_for(spec.run, RunPhase::Done, 60);
    let window = evidence(&coordinator.wait_for_streams(spec.run, 10)).attempts[0]
        .window
        .clone();
    println!(
        "sent in a window of 3 s: {} bytes; daemon CPU {} us",
        window.bytes_sent,
        window.daemon_cpu_ns / 1000
    );
    assert!((100..4 * 1024).contains(&window.bytes_sent), "{window:?}");
    assert!(window.daemon_cpu_ns > 0);
    {
        let known = coordinator.known();
        let begin = known.phase_times[&(spec.run, RunPhase::Running)] + Duration::from_millis(200);
        let end = known.phase_times[&(spec.run, RunPhase::Draining)];
        assert!(
            !known
                .log_messages
                .iter()
                .any(|(at, _, _)| (begin..end).contains(at)),
            "no chunk in the window"
        );
        let in_window = known
            .heartbeats
            .iter()
            .filter(|(at, _)| (begin..end).contains(at));
        let running: Vec<_> = in_window.map(|(_, heartbeat)| heartbeat.running).collect();
        assert!(
            running.len() >= 4 && running.iter().all(|run| *run == Some(spec.run)),
            "{running:?}"
        );
    }
    coordinator.wait_for_streams(backlog, 60);
}

#[test]
fn a_live_run_delivers_while_it_runs() {
    let Some(broker) = Mosquitto::start() else { return };
    let agent = Agent::start_with(broker.port, "min_free_mib = 16\nlive_kib_per_s = 4096");
    let coordinator = Coordinator::start(broker.port, &agent.device);
    let mut spec = agent.spec(4_000);
    spec.delivery = Delivery::Live;
    coordinator.start_run(&spec);
    coordinator.wait_for(spec.run, RunPhase::Running, 30);
    sleep(Duration::from_millis(500));
    // `run.log` grows meanwhile, whatever LoadGen writes.
    let mut log = fs::File::options()
        .append(true)
        .open(agent.file(spec.run, "run.log"))
        .unwrap();
    std::io::Write::write_all(&mut log, &noise(300_000)).unwrap();
    eventually("the log to arrive", 3, || {
        (coordinator.bytes_of(spec.run) >= 300_000).then_some(())
    });
    assert_eq!(
        coordinator.known().states[&spec.run].last().unwrap().state.phase,
        RunPhase::Running
    );
    coordinator.wait_for(spec.run, RunPhase::Done, 30);
    let streams = coordinator.wait_for_streams(spec.run, 10);
    for (name, bytes) in &streams {
        assert_eq!(
            sha256(bytes),
            sha256(&fs::read(agent.file(spec.run, name)).unwrap()),
            "{name}"
        );
    }
    assert!(evidence(&streams).attempts[0].window.bytes_sent > 300_000);
}

#[test]
fn a_live_run_keeps_to_its_rate_and_the_daemon_off_the_timing_processor() {
    let Some(broker) = Mosquitto::start() else { return };
    let agent = Agent::start_with(broker.port, "min_free_mib = 16\nlive_kib_per_s = 100");
    let coordinator = Coordinator::start(broker.port, &agent.device);
    let mut spec = agent.spec(3_000);
    spec.delivery = Delivery::Live;
    coordinator.start_run(&spec);
    coordinator.wait_for(spec.run, RunPhase::Running, 30);
    let mut log = fs::File::options()
        .append(true)
        .open(agent.file(spec.run, "run.log"))
        .unwrap();
    std::io::Write::write_all(&mut log, &noise(5_000_000)).unwrap();
    let (flusher, allowed) = eventually("the thread that flushes", 10, || agent.thread("live"));
    sleep(Duration::from_secs(1));
    assert!(
        agent.thread("live").is_none_or(|(thread, _)| thread == flusher),
        "one thread as long as the run is on"
    );
    coordinator.wait_for(spec.run, RunPhase::Done, 60);
    eventually("its end", 10, || agent.thread("live").is_none().then_some(()));
    let attempt = evidence(&coordinator.wait_for_streams(spec.run, 10)).attempts[0].clone();
    let clocks = attempt.started.unwrap().monotonic_ns..attempt.ended.unwrap().monotonic_ns;
    let seconds = (clocks.end - clocks.start) as f64 / 1e9;
    println!("in {seconds:.2} s: {:?}", attempt.window);
    // One chunk, the heartbeats, and what is sent until a slow machine learns of the window's end.
    let most = (seconds + 1.0) * 102_400.0 + 70_000.0;
    assert!((attempt.window.bytes_sent as f64) < most, "{:?}", attempt.window);
    let cpus = std::thread::available_parallelism().unwrap().get();
    assert_eq!(attempt.window.daemon_kept_off_cpu.is_some(), cpus > 1);
    let is_off = |cpu| allowed.get(cpu as usize) == Some(&false);
    assert!(
        attempt.window.daemon_kept_off_cpu.is_none_or(is_off),
        "{allowed:?}"
    );
    assert!(attempt.window.timing_sleeps.is_some() && attempt.window.daemon_wakeups.is_some());
}

#[test]
fn a_run_process_that_cannot_go_on_fails_and_its_log_arrives() {
    let Some(broker) = Mosquitto::start() else { return };
    let agent = Agent::start(broker.port);
    let coordinator = Coordinator::start(broker.port, &agent.device);
    let mut spec = agent.spec(1_000);
    spec.conf.user_conf = "this line has no equals sign\n".to_owned();
    coordinator.start_run(&spec);
    let report = coordinator.wait_for(spec.run, RunPhase::Failed, 20);
    let reason = report.state.reason.unwrap();
    assert!(reason.contains("user.conf"), "{reason}");
    let streams = coordinator.wait_for_streams(spec.run, 20);
    assert!(!streams["run.log"].is_empty());
}
