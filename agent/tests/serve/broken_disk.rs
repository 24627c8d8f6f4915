//! Tests with a disk that once fails to flush or to read, or is slow. The daemon reports such data as uncertain, proves it as
//! soon as it can, and delays no other run.

use std::{fs, io::Write as _, path::Path};

use regatta_test_support::strace::{Strace, let_go};
use regatta_types::documents::{Attempt, Delivery, Document as _, Evidence, RunPhase};
use regatta_wire::message::Command;
use rustix::process::test_kill_process;

use crate::{
    agent::{Agent, noise},
    coordinator::Coordinator,
    eventually,
    mosquitto::Mosquitto,
};

const DETAIL: &str = "mlperf_log_detail.txt";

/// A file cannot be read or flushed when its run is sealed. The run reports it, and is sealed again without a restart.
fn what_fails_is_sealed_again(fault: &str, expected: &str) {
    let Some(broker) = Mosquitto::start() else { return };
    let Some(strace) = Strace::find() else { return };
    let mut agent = Agent::start(broker.port);
    agent.stop();
    let run = agent.lay_down_interrupted_run(&[(DETAIL, b"what LoadGen did"), ("run.log", b"what was said")]);
    let coordinator = Coordinator::start(broker.port, &agent.device);
    agent.launch_under(&strace, &[&agent.file(run, DETAIL)], fault);
    let failed = coordinator.wait_for(run, RunPhase::Failed, 30);
    let reason = failed.state.reason.clone().unwrap();
    assert!(
        reason.starts_with("interrupted: ") && reason.ends_with(expected),
        "{reason}"
    );
    let listed: Vec<&str> = failed.streams.iter().map(|name| name.as_str()).collect();
    assert_eq!(
        listed,
        ["evidence.json", "evidence.sig", DETAIL, "run.log"],
        "what is missing is listed, so that no record is written without it"
    );
    let streams = coordinator.wait_for_streams(run, 60);
    assert_eq!(streams[DETAIL], b"what LoadGen did");
    assert!(streams.contains_key("evidence.sig"));
    let last = coordinator.known().states[&run].last().unwrap().clone();
    let evidence = Evidence::from_json(&streams["evidence.json"]).unwrap();
    assert_eq!(evidence.outcome, last.state, "the evidence has the failure");
    assert_eq!(last.state.reason, Some(reason));
    assert!(
        last.state.revision > failed.state.revision,
        "a coordinator only takes the list of files of a new revision"
    );
    assert_eq!(evidence.files.len(), 2);
}

#[test]
fn a_flush_that_fails_once_at_the_sealing_is_not_forgotten() {
    what_fails_is_sealed_again(
        "fsync:error=EIO:when=1",
        "the run could not be sealed: mlperf_log_detail.txt cannot be flushed to disk: Input/output error (os error 5)",
    );
}

/// A second flush of the same file would prove nothing: the copy is flushed.
#[test]
fn a_file_that_can_never_be_flushed_is_replaced_by_a_copy() {
    what_fails_is_sealed_again(
        "fsync:error=EIO",
        "the run could not be sealed: mlperf_log_detail.txt cannot be flushed to disk: Input/output error (os error 5)",
    );
}

#[test]
fn failed_read_is_retried_until_the_run_is_signed() {
    what_fails_is_sealed_again(
        "read:error=EIO:when=1",
        "the run could not be sealed: mlperf_log_detail.txt cannot be sealed: Input/output error (os error 5)",
    );
}

#[test]
fn a_run_that_cannot_be_sealed_delays_no_other_and_is_sealed_when_the_disk_is_good() {
    let Some(broker) = Mosquitto::start() else { return };
    let Some(strace) = Strace::find() else { return };
    let mut agent = Agent::start(broker.port);
    agent.stop();
    let run = agent.lay_down_interrupted_run(&[(DETAIL, b"what LoadGen did")]);
    let coordinator = Coordinator::start(broker.port, &agent.device);
    // The copy cannot be read either.
    let faults = "read,pread64,copy_file_range,sendfile:error=EIO";
    agent.launch_under(&strace, &[&agent.file(run, DETAIL)], faults);
    coordinator.wait_for(run, RunPhase::Failed, 30);
    let next = agent.spec(100);
    coordinator.start_run(&next);
    coordinator.wait_for(next.run, RunPhase::Done, 60);
    assert!(!agent.file(run, "evidence.json").exists());
    eventually("another attempt", 60, || {
        (agent.log().matches("cannot be flushed").count() >= 2).then_some(())
    });
    let_go(agent.pid());
    assert!(coordinator.wait_for_streams(run, 60).contains_key("evidence.sig"));
}

/// Evidence that cannot be written remains a pending upload, like a file.
#[test]
fn evidence_that_cannot_be_written_once_is_written_again() {
    let Some(broker) = Mosquitto::start() else { return };
    let Some(strace) = Strace::find() else { return };
    let mut agent = Agent::start(broker.port);
    agent.stop();
    let run = agent.lay_down_interrupted_run(&[("run.log", b"what was said")]);
    let coordinator = Coordinator::start(broker.port, &agent.device);
    agent.launch_under(
        &strace,
        &[&agent.file(run, ".evidence.json.new")],
        "write:error=ENOSPC:when=1",
    );
    let reason = coordinator
        .wait_for(run, RunPhase::Failed, 30)
        .state
        .reason
        .unwrap();
    assert!(
        reason.ends_with("evidence.json cannot be sealed: No space left on device (os error 28)"),
        "{reason}"
    );
    // Each attempt has a thread of its own, whose first write fails.
    let_go(agent.pid());
    assert!(coordinator.wait_for_streams(run, 60).contains_key("evidence.sig"));
}

/// Appends to the output of the run process, as an engine that prints.
fn talk(log: &Path) {
    let mut log = fs::File::options().append(true).open(log).unwrap();
    log.write_all(&noise(100_000)).unwrap();
}

/// Starts a live run with a fault of fdatasync, which only live delivery uses.
fn live_run(broker: &Mosquitto, strace: &Strace, fault: &str) -> (Agent, Coordinator, regatta_types::RunId) {
    let mut agent = Agent::start_with(broker.port, "min_free_mib = 16\nheartbeat_ms = 250");
    agent.stop();
    let coordinator = Coordinator::start(broker.port, &agent.device);
    let mut spec = agent.spec(2_000);
    spec.delivery = Delivery::Live;
    agent.launch_under(strace, &[&agent.file(spec.run, "run.log")], fault);
    coordinator.wait_for_hello(true);
    coordinator.start_run(&spec);
    coordinator.wait_for(spec.run, RunPhase::Running, 60);
    talk(&agent.file(spec.run, "run.log"));
    (agent, coordinator, spec.run)
}

#[test]
fn a_flush_that_fails_once_while_loadgen_runs_fails_the_run() {
    let Some(broker) = Mosquitto::start() else { return };
    let Some(strace) = Strace::find() else { return };
    let (agent, coordinator, run) = live_run(&broker, &strace, "fdatasync:error=EIO:when=1");
    let report = coordinator.wait_for(run, RunPhase::Failed, 60);
    assert_eq!(
        report.state.reason.as_deref(),
        Some("run.log cannot be flushed to disk: Input/output error (os error 5)")
    );
    let streams = coordinator.wait_for_streams(run, 30);
    let evidence = Evidence::from_json(&streams["evidence.json"]).unwrap();
    assert_eq!(evidence.outcome, report.state, "signed, and no result");
    assert!(streams["run.log"] == fs::read(agent.file(run, "run.log")).unwrap());
    assert_eq!(
        agent.log().matches("cannot be flushed").count(),
        2,
        "once, and as the run's end"
    );
}

#[test]
fn a_flush_that_takes_its_time_holds_up_neither_heartbeats_nor_commands() {
    let Some(broker) = Mosquitto::start() else { return };
    let Some(strace) = Strace::find() else { return };
    // Longer than any wait in these tests.
    let (agent, coordinator, run) = live_run(&broker, &strace, "fdatasync:delay_enter=600s:when=1");
    let process = agent.run_process(run);
    eventually("the flush to begin", 20, || {
        strace.seen().contains("fdatasync").then_some(())
    });
    let heard = || coordinator.known().heartbeats.len();
    let before = heard();
    eventually("heartbeats beside it", 20, || {
        (heard() >= before + 4).then_some(())
    });
    coordinator.command(
        run,
        &Command::Abort {
            reason: "enough seen".to_owned(),
        },
    );
    eventually("the run process to be gone", 20, || {
        test_kill_process(process).is_err().then_some(())
    });
    let before = heard();
    eventually("heartbeats after it", 20, || {
        (heard() >= before + 2).then_some(())
    });
    assert!(
        !agent.file(run, "evidence.json").exists(),
        "nothing is proven before that flush has said how it went"
    );
    let_go(agent.pid());
    coordinator.wait_for(run, RunPhase::Aborted, 30);
    assert!(coordinator.wait_for_streams(run, 30).contains_key("evidence.sig"));
}

/// A released run is removed for missing space, and not because something else below `runs` cannot be read.
#[test]
fn a_directory_that_cannot_be_read_costs_no_run() {
    let Some(broker) = Mosquitto::start() else { return };
    let Some(strace) = Strace::find() else { return };
    let mut agent = Agent::start(broker.port);
    agent.stop();
    let run = agent.lay_down_interrupted_run(&[("run.log", b"what was said")]);
    let runs = agent.run_dir(run).parent().unwrap().to_owned();
    let unreadable = [runs.join("lost+found"), agent.run_dir(run).join("unreadable")];
    for directory in &unreadable {
        fs::create_dir(directory).unwrap();
    }
    let coordinator = Coordinator::start(broker.port, &agent.device);
    agent.launch_under(&strace, &[&unreadable[0], &unreadable[1]], "openat:error=EIO");
    coordinator.wait_for(run, RunPhase::Failed, 30);
    coordinator.wait_for_streams(run, 30);
    coordinator.command(run, &Command::Release);
    let next = agent.spec(100);
    coordinator.start_run(&next);
    coordinator.wait_for(next.run, RunPhase::Done, 60);
    assert!(agent.file(run, "run.log").exists(), "there was space for both");
}

/// A run is removed when its directory has another name, whatever remains below it.
#[test]
fn a_run_whose_files_cannot_be_deleted_is_forgotten_and_stops_no_start() {
    let Some(broker) = Mosquitto::start() else { return };
    let Some(strace) = Strace::find() else { return };
    let mut agent = Agent::start(broker.port);
    agent.stop();
    let run = agent.lay_down_interrupted_run(&[("run.log", b"what was said")]);
    let leftover = agent.run_dir(run).with_file_name(format!(".new-{run}"));
    let coordinator = Coordinator::start(broker.port, &agent.device);
    agent.launch_under(&strace, &[&leftover], "unlinkat:error=EIO");
    coordinator.wait_for(run, RunPhase::Failed, 30);
    coordinator.wait_for_streams(run, 30);
    coordinator.command(run, &Command::Release);
    coordinator.command(run, &Command::Forget);
    eventually("the run to be forgotten", 20, || {
        coordinator.known().cleared.contains(&run).then_some(())
    });
    assert!(!agent.run_dir(run).exists() && leftover.exists());

    agent.stop();
    coordinator.wait_for_hello(false);
    agent.launch_under(&strace, &[&leftover], "unlinkat:error=EIO");
    let hello = coordinator.wait_for_hello(true);
    assert!(hello.runs.is_empty(), "{:?}", hello.runs);
}

/// A restarted daemon could not end a process that it does not know.
#[test]
fn a_run_process_that_cannot_be_recorded_fails_its_run() {
    let Some(broker) = Mosquitto::start() else { return };
    let Some(strace) = Strace::find() else { return };
    let mut agent = Agent::start(broker.port);
    agent.stop();
    let spec = agent.spec(500);
    let coordinator = Coordinator::start(broker.port, &agent.device);
    // The first write says that the run is being prepared, the second has its process.
    let job = agent.run_dir(spec.run).join(".job.json.new");
    agent.launch_under(&strace, &[&job], "write:error=EIO:when=2");
    coordinator.wait_for_hello(true);
    coordinator.start_run(&spec);
    let report = coordinator.wait_for(spec.run, RunPhase::Failed, 60);
    let reason = report.state.reason.unwrap();
    assert!(
        reason.starts_with("the run process cannot be recorded: ") && reason.ends_with("(os error 5)"),
        "{reason}"
    );
    assert!(
        coordinator
            .wait_for_streams(spec.run, 30)
            .contains_key("evidence.sig")
    );
}

/// The report of the run process is read again for the evidence, after its hash.
#[test]
fn a_report_that_cannot_be_read_once_is_no_missing_report() {
    let Some(broker) = Mosquitto::start() else { return };
    let Some(strace) = Strace::find() else { return };
    let mut agent = Agent::start(broker.port);
    agent.stop();
    let reported = Attempt {
        engine: "the engine as the run process reports it".to_owned(),
        ..Attempt::requested(&agent.spec(1_000))
    };
    let run = agent.lay_down_interrupted_run(&[("attempt.json", &serde_json::to_vec(&reported).unwrap())]);
    let coordinator = Coordinator::start(broker.port, &agent.device);
    agent.launch_under(
        &strace,
        &[&agent.file(run, "attempt.json")],
        "read:error=EIO:when=3",
    );
    let failed = coordinator.wait_for(run, RunPhase::Failed, 30);
    let reason = failed.state.reason.unwrap();
    assert!(
        reason.ends_with("attempt.json cannot be sealed: Input/output error (os error 5)"),
        "{reason}"
    );
    let streams = coordinator.wait_for_streams(run, 60);
    let evidence = Evidence::from_json(&streams["evidence.json"]).unwrap();
    assert_eq!(evidence.attempts, [reported]);
}
