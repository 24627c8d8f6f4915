//! Tests of the store through its own interface.

use regatta_types::{
    DeviceId,
    documents::{RunPhase, RunState},
};

use super::{
    RunChange, RunRemoval, Store, StoreError, StreamRow,
    run_draft::{RunDraft, RunOutcome},
};
use crate::examples::{example_draft, example_record};

fn draft(device: &str) -> RunDraft {
    example_draft(device.repeat(32).parse().unwrap())
}

fn state(phase: RunPhase, revision: u64) -> RunState {
    RunState {
        phase,
        reason: None,
        revision,
    }
}

#[test]
fn a_draft_is_read_back_as_it_was_added() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let requested = draft("a");
    Store::open(&path).unwrap().runs().add(&requested).unwrap();
    let found = Store::open(&path)
        .unwrap()
        .runs()
        .get(requested.spec.run)
        .unwrap()
        .unwrap();
    assert_eq!(found.draft, requested);
    assert_eq!(found.state, state(RunPhase::Queued, 0));
    assert_eq!(
        (found.spec_sha256, found.known, found.recorded),
        (None, false, None)
    );
}

#[test]
fn a_store_of_another_schema_is_refused_with_both_versions() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    drop(Store::open(&path).unwrap());
    Store::open(&path).unwrap().set_schema_version(99);
    let refused = Store::open(&path).unwrap_err();
    assert!(
        matches!(refused, StoreError::OtherVersion { found: 99, .. }),
        "{refused}"
    );
}

#[test]
fn only_the_runs_own_device_moves_it_and_only_forward() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("db")).unwrap();
    let requested = draft("a");
    let (run, device) = (requested.spec.run, requested.spec.device.clone());
    let other: DeviceId = "b".repeat(32).parse().unwrap();
    store.runs().add(&requested).unwrap();
    let reported = |device, phase, revision| {
        store
            .runs()
            .record_state(device, run, &state(phase, revision))
            .unwrap()
    };
    assert_eq!(
        reported(&device, RunPhase::Running, 3),
        RunChange::Unknown,
        "it has not been sent yet"
    );
    store.runs().fix_spec(run, "00").unwrap();
    assert_eq!(reported(&other, RunPhase::Running, 3), RunChange::Unknown);
    assert_eq!(reported(&device, RunPhase::Running, 3), RunChange::Changed);
    assert_eq!(reported(&device, RunPhase::Queued, 1), RunChange::Stale);
    assert_eq!(reported(&device, RunPhase::Running, 3), RunChange::Repeated);
    assert_eq!(
        store.runs().get(run).unwrap().unwrap().state,
        state(RunPhase::Running, 3)
    );
}

#[test]
fn a_run_is_recorded_once_it_has_ended_and_every_listed_stream_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("db")).unwrap();
    let requested = draft("a");
    let run = requested.spec.run;
    store.runs().add(&requested).unwrap();
    store.runs().fix_spec(run, "00").unwrap();
    store
        .runs()
        .record_state(&requested.spec.device, run, &state(RunPhase::Failed, 9))
        .unwrap();
    let name = "mlperf_log_summary.txt".parse().unwrap();
    store.streams().list(run, &name).unwrap();
    assert!(
        store.runs().recordable().unwrap().is_empty(),
        "a listed stream is not here yet"
    );
    let mut row = StreamRow {
        name,
        listed: false,
        committed: 5,
        stated_length: Some(5),
        stated_sha256: Some("00".to_owned()),
        is_complete: false,
    };
    store.streams().record_progress(run, &row).unwrap();
    assert!(store.runs().recordable().unwrap().is_empty());
    row.is_complete = true;
    store.streams().record_progress(run, &row).unwrap();
    assert_eq!(store.runs().recordable().unwrap().len(), 1);
    assert!(
        store.streams().of_run(run).unwrap()[0].listed,
        "that it is listed is kept"
    );
}

#[test]
fn an_abort_ends_at_once_what_was_never_sent() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("db")).unwrap();
    let [waiting, sent] = [draft("a"), draft("a")];
    store.runs().add(&waiting).unwrap();
    store.runs().add(&sent).unwrap();
    store.runs().fix_spec(sent.spec.run, "00").unwrap();
    assert!(store.runs().request_abort(waiting.spec.run, "no").unwrap());
    let ended = store.runs().get(waiting.spec.run).unwrap().unwrap();
    assert_eq!((ended.state.phase, ended.is_over()), (RunPhase::Aborted, true));
    assert!(store.runs().request_abort(sent.spec.run, "no").unwrap());
    let requested = store.runs().get(sent.spec.run).unwrap().unwrap();
    assert_eq!(
        (requested.state.phase, requested.is_over()),
        (RunPhase::Queued, false)
    );
    assert!(!store.runs().request_abort(waiting.spec.run, "again").unwrap());
}

#[test]
fn a_new_store_may_be_opened_by_several_at_once() {
    for _ in 0..10 {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("db");
        std::thread::scope(|scope| {
            for number in 0..4 {
                let path = &path;
                scope.spawn(move || {
                    let store = Store::open(path).unwrap();
                    store
                        .enrollment_tokens()
                        .add(&number.to_string(), &number.to_string(), "2100")
                        .unwrap();
                });
            }
        });
    }
}

#[test]
fn a_record_of_a_run_that_has_changed_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("db")).unwrap();
    let requested = draft("a");
    store.runs().add(&requested).unwrap();
    store.runs().fix_spec(requested.spec.run, "00").unwrap();
    let stale = store.runs().get(requested.spec.run).unwrap().unwrap();
    let report = state(RunPhase::Failed, 3);
    store
        .runs()
        .record_state(&stale.device, stale.id, &report)
        .unwrap();
    let record = example_record(&stale, &report);
    let refused = store
        .runs()
        .record_unchanged(&stale, &record, &RunOutcome::default());
    assert!(matches!(refused, Err(StoreError::RunChanged(_))), "{refused:?}");
    assert!(store.runs().get(stale.id).unwrap().unwrap().recorded.is_none());
    let current = store.runs().get(stale.id).unwrap().unwrap();
    store
        .runs()
        .record_unchanged(&current, &record, &RunOutcome::default())
        .unwrap();
    assert!(store.runs().get(stale.id).unwrap().unwrap().recorded.is_some());
}

#[test]
fn a_removed_run_is_remembered_until_a_settled_inventory_lacks_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("db")).unwrap();
    let requested = draft("a");
    let (run, device) = (requested.spec.run, requested.spec.device.clone());
    store.runs().add(&requested).unwrap();
    store.runs().fix_spec(run, "00").unwrap();
    let ended = state(RunPhase::Aborted, 3);
    store.runs().record_state(&device, run, &ended).unwrap();
    let row = store.runs().get(run).unwrap().unwrap();
    let outcome = RunOutcome {
        forgettable: true,
        ..RunOutcome::default()
    };
    store
        .runs()
        .record_unchanged(&row, &example_record(&row, &ended), &outcome)
        .unwrap();
    assert_eq!(store.runs().remove(run).unwrap(), RunRemoval::Everywhere);
    let held = |holds: bool, is_settled| {
        let held = store.removed_runs().reconcile(&device, |_| holds, is_settled);
        held.unwrap().len()
    };
    // A restarted agent, or another with the same identity, lists its runs before all are known.
    assert_eq!((held(false, false), held(true, false)), (0, 1));
    assert_eq!((held(false, true), held(true, true)), (0, 0));
}

#[test]
fn an_abandoned_run_keeps_its_abort_until_the_device_confirms_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("db")).unwrap();
    for (last_heard, may_execute) in [
        (RunPhase::Queued, true),
        (RunPhase::Running, true),
        (RunPhase::Draining, false),
    ] {
        let requested = draft("a");
        let (run, device) = (requested.spec.run, requested.spec.device.clone());
        store.runs().add(&requested).unwrap();
        store.runs().fix_spec(run, "00").unwrap();
        let reported = |phase, revision| {
            store
                .runs()
                .record_state(&device, run, &state(phase, revision))
                .unwrap();
            store.runs().pending_aborts(&device).unwrap().len()
        };
        reported(last_heard, 1);
        assert!(store.runs().give_up(run, "given up").unwrap());
        // An earlier retained state confirms nothing.
        assert_eq!(reported(last_heard, 1), usize::from(may_execute), "{last_heard}");
        assert_eq!(reported(RunPhase::Aborted, 2), 0);
    }
}

#[test]
fn a_commit_that_fails_leaves_no_transaction_open() {
    if crate::database::test_server::is_on_server() {
        // Only SQLite leaves one open.
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let store = Store::open(&path).unwrap();
    // A deferred constraint fails at the commit and leaves the transaction open.
    let add_run_with_an_orphan = |store: &Store| {
        store
            .database
            .batch("PRAGMA defer_foreign_keys = ON; INSERT INTO streams (run, name) VALUES ('none', 'a')")?;
        store.runs().add(&draft("a"))
    };
    store.all_or_nothing(add_run_with_an_orphan).unwrap_err();
    let kept = draft("b");
    store.all_or_nothing(|store| store.runs().add(&kept)).unwrap();
    let other = Store::open(&path).unwrap();
    let runs = other.runs().open_states().unwrap();
    assert_eq!(runs.iter().map(|run| run.id).collect::<Vec<_>>(), [kept.spec.run]);
}
