//! Tests of SIGKILL to daemon and broker during delivery, and of damage to the daemon's files.

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    time::Duration,
};

use regatta_types::documents::RunPhase;

use crate::{
    agent::{Agent, noise},
    coordinator::Coordinator,
    eventually,
    lean::MAX_HEAP_KIB,
    mosquitto::Mosquitto,
};

const BIG: usize = 30_000_000;

fn wait_for_bytes(coordinator: &Coordinator, run: regatta_types::RunId, bytes: usize) {
    eventually("some of the delivery", 60, || {
        (coordinator.bytes_of(run) > bytes).then_some(())
    });
}

#[test]
fn a_killed_daemon_goes_on_where_it_was() {
    let Some(broker) = Mosquitto::start() else { return };
    let mut agent = Agent::start(broker.port);
    agent.stop();
    let big = noise(BIG);
    let run = agent.lay_down_interrupted_run(&[("mlperf_log_accuracy.json", &big)]);
    let coordinator = Coordinator::start(broker.port, &agent.device);
    coordinator.known().pause = Duration::from_millis(2);
    agent.launch();
    for part in 1..=3 {
        wait_for_bytes(&coordinator, run, part * BIG / 4);
        agent.kill();
        if part == 2 {
            // The power failed while the journal was written.
            let journal = agent.run_dir(run).join("outbox.journal");
            OpenOptions::new()
                .append(true)
                .open(journal)
                .unwrap()
                .write_all(&[9, 0, 0, 0, 1, 2])
                .unwrap();
        }
        agent.launch();
    }
    coordinator.known().pause = Duration::ZERO;
    let streams = coordinator.wait_for_streams(run, 120);
    assert!(streams["mlperf_log_accuracy.json"] == big);
    assert!(agent.log().contains("cut 6 bytes of a torn record"));
    let known = coordinator.known();
    let repeated: u64 = known.streams.values().map(|stream| stream.repeated).sum();
    println!("{repeated} of {BIG} bytes were sent again after three kills");
    assert!(
        repeated < BIG as u64,
        "the journal spares most of what was acknowledged"
    );
}

#[test]
fn a_killed_broker_without_persistence_costs_nothing() {
    let Some(mut broker) = Mosquitto::start() else {
        return;
    };
    let mut agent = Agent::start(broker.port);
    agent.stop();
    let big = noise(BIG);
    let run = agent.lay_down_interrupted_run(&[("mlperf_log_accuracy.json", &big)]);
    let coordinator = Coordinator::start(broker.port, &agent.device);
    coordinator.known().pause = Duration::from_millis(1);
    agent.launch();
    for part in 1..=5 {
        wait_for_bytes(&coordinator, run, part * BIG / 6);
        broker.kill();
        std::thread::sleep(Duration::from_millis(if part == 3 { 3_000 } else { 50 }));
        broker.start_again();
    }
    let streams = coordinator.wait_for_streams(run, 120);
    assert!(streams["mlperf_log_accuracy.json"] == big);
    // Hello and states, which the broker had lost, are published again.
    assert!(coordinator.known().hello.as_ref().unwrap().online);
}

#[test]
fn a_lost_journal_costs_time_only() {
    let Some(broker) = Mosquitto::start() else { return };
    let mut agent = Agent::start(broker.port);
    agent.stop();
    let big = noise(2_000_000);
    let run = agent.lay_down_interrupted_run(&[("mlperf_log_detail.txt", &big)]);
    let coordinator = Coordinator::start(broker.port, &agent.device);
    coordinator.known().silent = true;
    agent.launch();
    coordinator.wait_for(run, RunPhase::Failed, 20);
    let evidence = fs::read(agent.file(run, "evidence.json")).unwrap();
    agent.kill();
    fs::write(agent.run_dir(run).join("outbox.journal"), b"garbage").unwrap();
    coordinator.known().silent = false;
    agent.launch();
    let streams = coordinator.wait_for_streams(run, 60);
    assert!(streams["mlperf_log_detail.txt"] == big);
    assert!(
        streams["evidence.json"] == evidence,
        "what was signed is not signed again"
    );
}

#[test]
fn a_damaged_journal_makes_no_run_done_before_it_is_delivered() {
    let Some(broker) = Mosquitto::start() else { return };
    let mut agent = Agent::start(broker.port);
    let coordinator = Coordinator::start(broker.port, &agent.device);
    coordinator.known().silent = true;
    let spec = agent.spec(300);
    coordinator.start_run(&spec);
    let run = spec.run;
    let last_report = || coordinator.known().states.get(&run)?.last().cloned();
    eventually("the run to be sealed", 30, || {
        last_report().filter(|report| !report.streams.is_empty())
    });
    for damage in [b"".as_slice(), b"garbage", b"RGTJ\x01\x00"] {
        agent.kill();
        fs::write(agent.run_dir(run).join("outbox.journal"), damage).unwrap();
        coordinator.known().states.clear();
        agent.launch();
        let report = eventually("the run's state", 20, last_report);
        assert_eq!(report.state.phase, RunPhase::Draining, "journal {damage:?}");
        assert!(agent.run_dir(run).exists());
    }
    coordinator.known().silent = false;
    coordinator.wait_for(run, RunPhase::Done, 60);
    let streams = coordinator.wait_for_streams(run, 20);
    assert!(streams.contains_key("mlperf_log_detail.txt") && streams.contains_key("evidence.sig"));
}

#[test]
fn a_stalled_broker_holds_up_and_loses_nothing() {
    let Some(broker) = Mosquitto::start() else { return };
    let mut agent = Agent::start(broker.port);
    agent.stop();
    let big = noise(BIG);
    let run = agent.lay_down_interrupted_run(&[("mlperf_log_accuracy.json", &big)]);
    let coordinator = Coordinator::start(broker.port, &agent.device);
    coordinator.known().pause = Duration::from_millis(1);
    agent.launch();
    wait_for_bytes(&coordinator, run, BIG / 3);
    let peak = agent.peak_heap_while(|| {
        broker.stall(Duration::from_secs(3));
        let streams = coordinator.wait_for_streams(run, 120);
        assert!(streams["mlperf_log_accuracy.json"] == big);
    });
    // Pages of the program that the loader has relocated are private too, and no heap.
    let peak = peak
        .zip(agent.relocated_kib())
        .map(|(peak, relocated)| peak - relocated);
    println!("the daemon's heap had at most {peak:?} KiB");
    assert!(peak.is_none_or(|peak| peak <= MAX_HEAP_KIB));
}

#[test]
fn a_command_sent_while_the_daemon_is_away_waits_at_the_broker() {
    let Some(broker) = Mosquitto::start() else { return };
    let mut agent = Agent::start(broker.port);
    let coordinator = Coordinator::start(broker.port, &agent.device);
    coordinator.wait_for_hello(true);
    for by_sigkill in [false, true] {
        if by_sigkill {
            agent.kill();
        } else {
            agent.stop();
        }
        coordinator.wait_for_hello(false);
        let spec = agent.spec(200);
        coordinator.start_run(&spec);
        agent.launch();
        coordinator.wait_for(spec.run, RunPhase::Done, 30);
    }
}
