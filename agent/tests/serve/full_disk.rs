//! Tests with a full disk: the state directory is on a small tmpfs.

use std::fs;

use regatta_test_support::small_disk::SmallDisk;
use regatta_types::documents::RunPhase;

use crate::{agent::Agent, coordinator::Coordinator, eventually, mosquitto::Mosquitto};

#[test]
fn a_disk_that_fills_up_fails_the_run_keeps_what_is_there_and_takes_no_other() {
    let Some(broker) = Mosquitto::start() else { return };
    let Some(disk) = SmallDisk::mount("2m") else {
        return;
    };
    let config = format!("min_free_mib = 0\nstate_dir = '{}/state'", disk.path.display());
    let mut agent = Agent::start_with(broker.port, &config);
    let coordinator = Coordinator::start(broker.port, &agent.device);
    let spec = agent.spec(1_500);
    coordinator.start_run(&spec);
    coordinator.wait_for(spec.run, RunPhase::Running, 30);
    disk.fill();
    let report = coordinator.wait_for(spec.run, RunPhase::Failed, 30);
    let reason = report.state.reason.unwrap();
    assert!(reason.contains("No space left on device"), "{reason}");
    // Existing files are delivered, and the reserve had room for the evidence.
    let streams = coordinator.wait_for_streams(spec.run, 20);
    assert!(
        streams.contains_key("run.log") && streams.contains_key("evidence.sig"),
        "{:?}",
        streams.keys()
    );
    disk.fill();
    let refused = agent.spec(1_000);
    coordinator.start_run(&refused);
    let report = coordinator.wait_for(refused.run, RunPhase::Failed, 10);
    assert!(
        report
            .state
            .reason
            .unwrap()
            .starts_with("the device cannot keep the run: ")
    );
    // With free space again, and after a restart, the device takes runs again.
    fs::remove_file(disk.path.join("filler")).unwrap();
    agent.stop();
    agent.launch();
    coordinator.wait_for_hello(true);
    let next = agent.spec(300);
    coordinator.start_run(&next);
    coordinator.wait_for(next.run, RunPhase::Done, 30);
}

#[test]
fn a_disk_that_gets_tight_costs_the_extras_and_not_the_log() {
    let Some(broker) = Mosquitto::start() else { return };
    let Some(disk) = SmallDisk::mount("16m") else {
        return;
    };
    let config = format!(
        "min_free_mib = 8\nheartbeat_ms = 250\nstate_dir = '{}/state'",
        disk.path.display()
    );
    let agent = Agent::start_with(broker.port, &config);
    let coordinator = Coordinator::start(broker.port, &agent.device);
    let spec = agent.spec(4_000);
    coordinator.start_run(&spec);
    coordinator.wait_for(spec.run, RunPhase::Running, 30);
    disk.fill_up_to(3 << 20);
    let log = disk.path.join(format!("state/runs/{}/files/run.log", spec.run));
    let says_so =
        || fs::read_to_string(&log).is_ok_and(|log| log.contains("nothing of what follows is kept"));
    eventually("the extras to end", 10, || says_so().then_some(()));
    // An engine that continues to print.
    let mut chatty = fs::File::options().append(true).open(&log).unwrap();
    std::io::Write::write_all(&mut chatty, &[b'x'; 100_000]).unwrap();
    coordinator.wait_for(spec.run, RunPhase::Done, 60);
    let streams = coordinator.wait_for_streams(spec.run, 20);
    let log = String::from_utf8(streams["run.log"].clone()).unwrap();
    assert!(
        log.trim_end().ends_with("nothing of what follows is kept"),
        "{log}"
    );
    for log in ["mlperf_log_summary.txt", "mlperf_log_detail.txt", "evidence.sig"] {
        assert!(!streams[log].is_empty(), "{log} is whole");
    }
}
