//! Tests of what may be sent while a run is active, and of the last flush of a live run.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use regatta_types::RunId;

use super::*;
use crate::daemon::{
    durable::Reserve,
    runs::{job::Job, run_dir::RunDir, storage::Storage, window_policy::WindowPolicy},
};

/// Returns a run with three logged bytes.
fn run(root: &Path, live: bool) -> Run {
    let (id, job) = (RunId::now(), Job::queued(0));
    let dir = RunDir::create(root, id, b"{}", &job).unwrap();
    fs::write(dir.files().join("run.log"), "log").unwrap();
    let storage = Storage {
        window_chunks: 4,
        reserve: Reserve::new(root.join("reserve")),
    };
    let window_policy = WindowPolicy {
        live,
        timing_cpu: None,
    };
    Run::open(id, dir, job, window_policy, &storage)
}

fn flushed() -> OnDisk {
    vec![("run.log".parse().unwrap(), 3)]
}

#[test]
fn while_a_run_is_active_only_its_own_live_chunks_are_sent_at_the_configured_rate() {
    let (root, now) = (tempfile::tempdir().unwrap(), Instant::now());
    let mut runs = [false, true].map(|live| run(root.path(), live));
    let [earlier, live] = [runs[0].id(), runs[1].id()];
    runs[0].begin_sealing();
    runs[0].open_for_delivery(&flushed());
    let mut delivery = Delivery::new(1);

    delivery.begin_run(&runs[1]);
    assert!(
        !delivery.has_message(runs.iter(), now),
        "the earlier run must wait"
    );
    runs[1].open_for_delivery(&flushed());
    let (sent, _) = delivery.next_message(runs.iter_mut(), now).unwrap();
    assert_eq!(sent, live);
    runs[1].open_for_delivery(&[("run.log".parse().unwrap(), 4)]);
    assert!(!delivery.has_message(runs.iter(), now), "the rate limit");
    let later = now + Duration::from_secs(3600);
    assert!(delivery.has_message(runs.iter(), later));

    delivery.end_live();
    delivery.end_run();
    let (sent, _) = delivery.next_message(runs.iter_mut(), now).unwrap();
    assert_eq!(sent, earlier, "without an active run, other runs continue");
    assert!(
        !delivery.has_message(runs.iter(), later),
        "the live run is not sealed"
    );
}

#[test]
fn a_flush_in_progress_at_the_end_of_a_live_run_is_the_last_one_and_counts() {
    let root = tempfile::tempdir().unwrap();
    let mut run = run(root.path(), true);
    let mut delivery = Delivery::new(1 << 20);
    delivery.begin_run(&run);
    delivery.handle_deadline(std::iter::once(&mut run), Instant::now());
    delivery.end_live();
    delivery.end_run();
    assert!(delivery.is_flushing(), "sealing must wait");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let event = runtime.block_on(delivery.next());
    assert!(matches!(event, DeliveryEvent::Flushed(id, on_disk) if id == run.id() && on_disk == flushed()));
    assert!(!delivery.is_flushing());
}
