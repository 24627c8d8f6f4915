//! Tests of streams after a crash of the coordinator and with a full disk.

use std::fs;

use regatta_types::documents::{RunPhase, RunState};
use regatta_wire::message::StreamVerdict;

use super::{super::reject_counters::RejectKind, Bench, ack, name};
use regatta_lab_store::{RunOutcome, RunRemoval, examples::example_record};

#[test]
fn unrecorded_bytes_are_truncated_after_a_crash() {
    let mut bench = Bench::new();
    let first = bench.chunk("log", 0, b"abc");
    bench.take([first]);
    let partial = bench.workspace.run(bench.run).partial_file(&name("log"));
    fs::write(&partial, b"abcTORN").unwrap();
    bench.restart();
    let rest = bench.chunk("log", 3, b"def");
    let end = bench.end("log", b"abcdef");
    assert_eq!(bench.take([rest, end]), ack(6, Some(StreamVerdict::Equal)));
    assert_eq!(bench.whole("log").unwrap(), b"abcdef");
}

#[test]
fn a_file_renamed_and_not_recorded_is_judged_again() {
    let mut bench = Bench::new();
    let first = bench.chunk("log", 0, b"abc");
    bench.take([first]);
    let dir = bench.workspace.run(bench.run);
    fs::create_dir_all(dir.files()).unwrap();
    fs::rename(dir.partial_file(&name("log")), dir.file(&name("log"))).unwrap();
    bench.restart();
    let end = bench.end("log", b"abc");
    assert_eq!(bench.take([end]), ack(3, Some(StreamVerdict::Equal)));
    assert_eq!(bench.whole("log").unwrap(), b"abc");
}

#[test]
fn a_full_disk_acknowledges_nothing_and_goes_on_later() {
    let mut bench = Bench::new();
    // A file in the place of the directory for partial streams simulates a failing disk.
    let partial = bench.workspace.run(bench.run).partial();
    fs::write(&partial, b"").unwrap();
    let first = bench.chunk("log", 0, b"abc");
    assert_eq!(bench.take([first]), None);
    assert_eq!(bench.ingest.rejects().count(RejectKind::Storage), 1);
    fs::remove_file(&partial).unwrap();
    let again = bench.chunk("log", 0, b"abc");
    assert_eq!(bench.take([again]), ack(3, None));
}

#[test]
fn data_of_a_removed_run_is_not_acknowledged() {
    let mut bench = Bench::new();
    let first = bench.chunk("log", 0, b"abc");
    assert_eq!(bench.take([first]), ack(3, None));
    let store = bench.workspace.store().unwrap();
    assert!(store.runs().give_up(bench.run, "given up").unwrap());
    let run = store.runs().get(bench.run).unwrap().unwrap();
    let record = example_record(&run, &run.state);
    store
        .runs()
        .record_unchanged(&run, &record, &RunOutcome::default())
        .unwrap();
    // The device confirms that it executes no more, so the run may be removed. Its stream is still open here.
    let state = RunState {
        phase: RunPhase::Failed,
        reason: None,
        revision: 9,
    };
    store
        .runs()
        .record_state(&bench.device, bench.run, &state)
        .unwrap();
    assert_eq!(store.runs().remove(bench.run).unwrap(), RunRemoval::HereOnly);
    fs::remove_dir_all(bench.workspace.run(bench.run).path()).unwrap();
    let before = bench.acks.0.lock().unwrap().len();
    let rest = bench.chunk("log", 3, b"def");
    let end = bench.end("log", b"abcdef");
    bench.take([rest, end]);
    let again = bench.chunk("log", 0, b"abc");
    bench.take([again]);
    assert_eq!(
        bench.acks.0.lock().unwrap().len(),
        before,
        "its device keeps the bytes"
    );
    assert!(bench.ingest.rejects().count(RejectKind::UnknownRun) > 0);
    assert!(!bench.workspace.run(bench.run).path().exists());
}
