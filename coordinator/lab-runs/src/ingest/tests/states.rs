//! Tests of states that devices report.

use regatta_types::documents::{RunPhase, RunState};
use regatta_wire::{message::StateReport, topic::Leaf};

use super::{super::reject_counters::RejectKind, Bench};

#[test]
fn a_late_state_does_not_turn_a_run_back() {
    let mut bench = Bench::new();
    let report = |bench: &Bench, phase, revision| {
        let state = RunState {
            phase,
            reason: None,
            revision,
        };
        let report = StateReport {
            run: bench.run,
            state,
            streams: Vec::new(),
        };
        bench.report(Leaf::State(bench.run), &report)
    };
    let running = report(&bench, RunPhase::Running, 4);
    let draining = report(&bench, RunPhase::Draining, 5);
    bench.take([draining, running]);
    let store = bench.workspace.store().unwrap();
    assert_eq!(
        store.runs().get(bench.run).unwrap().unwrap().state.phase,
        RunPhase::Draining
    );
}

#[test]
fn a_state_that_a_full_disk_refused_is_taken_when_there_is_space_again() {
    let mut bench = Bench::new();
    let state = RunState {
        phase: RunPhase::Running,
        reason: None,
        revision: 4,
    };
    let report = StateReport {
        run: bench.run,
        state,
        streams: Vec::new(),
    };
    let phase = |bench: &Bench| {
        let store = bench.workspace.store().unwrap();
        store.runs().get(bench.run).unwrap().unwrap().state.phase
    };
    let store = bench.workspace.store().unwrap();
    store.refuse("runs", "1 = 1", "FAIL");
    let report = bench.report(Leaf::State(bench.run), &report);
    bench.take([report]);
    bench.take([]);
    assert_eq!(phase(&bench), RunPhase::Queued);
    assert_eq!(bench.ingest.rejects().count(RejectKind::Storage), 2);
    store.refuse_nothing("runs");
    bench.take([]);
    assert_eq!(phase(&bench), RunPhase::Running);
    bench.take([]);
    assert_eq!(bench.ingest.rejects().count(RejectKind::Storage), 2);
}
