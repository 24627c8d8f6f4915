//! Tests of a run's state on disk: with a full disk, unreadable files and a lost journal.

use regatta_test_support::small_disk::SmallDisk;

use super::*;
use crate::daemon::runs::sealed::SealError;

fn storage(state_dir: &std::path::Path) -> Storage {
    Storage {
        window_chunks: 4,
        reserve: Reserve::new(state_dir.join("reserve")),
    }
}

#[test]
fn a_state_is_written_to_a_full_disk_with_the_reserve() {
    let Some(disk) = SmallDisk::mount("2m") else {
        return;
    };
    let storage = storage(&disk.path);
    storage.reserve.set_aside().unwrap();
    let (id, job) = (RunId::now(), Job::queued(0));
    let dir = RunDir::create(&disk.path, id, b"{}", &job).unwrap();
    let mut run = Run::open(id, dir.clone(), job, WindowPolicy::default(), &storage);
    disk.fill();
    run.enter(RunPhase::Preparing, None);
    assert_eq!(dir.read_job().unwrap().state, run.job().state);
}

#[test]
fn a_run_whose_files_could_not_be_hashed_is_neither_done_nor_forgotten() {
    let runs = tempfile::tempdir().unwrap();
    let id = RunId::now();
    let mut job = Job::queued(0);
    job.state.phase = RunPhase::Draining;
    job.sealed = true;
    let dir = RunDir::create(runs.path(), id, b"{}", &job).unwrap();
    let mut run = Run::open(
        id,
        dir.clone(),
        job,
        WindowPolicy::default(),
        &storage(runs.path()),
    );
    let sealed = |all_hashed| Sealed {
        streams: Vec::new(),
        unread: Vec::new(),
        all_hashed,
        incomplete: (!all_hashed).then_some(SealError::Thread),
    };
    run.set_sealed(sealed(false));
    assert!(!run.settle_delivery() && !run.is_delivered());
    let unsealed_files = dir.read_job().unwrap().unsealed_files;
    assert!(!unsealed_files.is_empty(), "known to the next start");
    assert_eq!(run.report().streams, unsealed_files, "and to the coordinator");
    run.set_sealed(sealed(true));
    assert!(run.settle_delivery() && run.phase() == RunPhase::Done);
}

#[test]
fn a_run_whose_journal_is_lost_is_not_delivered_before_it_is_sealed_again() {
    let runs = tempfile::tempdir().unwrap();
    let id = RunId::now();
    let mut job = Job::queued(0);
    job.state.phase = RunPhase::Failed;
    job.sealed = true;
    let dir = RunDir::create(runs.path(), id, b"{}", &job).unwrap();
    std::fs::write(dir.files().join("run.log"), "the only copy").unwrap();
    let run = Run::open(id, dir, job, WindowPolicy::default(), &storage(runs.path()));
    assert!(!run.is_delivered() && run.needs_sealing());
    assert_eq!(run.report().streams, ["run.log".parse().unwrap()]);
}
