//! Tests of which run is next, and of runs that the device refuses.

use std::{fs, path::Path};

use regatta_types::documents::RunState;
use regatta_wire::message::{RunHolding, StreamVerdict};

use super::*;
use crate::daemon::runs::{job::Job, run_dir::RunDir, sealed::SealedStream};

/// Returns the queue of a state directory with these queued runs.
fn queue(root: &Path, queued: &[RunId]) -> RunQueue {
    let config = root.join("agent.toml");
    fs::write(
        &config,
        "name = \"board\"\nstate_dir = \"state\"\ndeliver_first_ms = 10000\n",
    )
    .unwrap();
    let runs = root.join("state/runs");
    fs::create_dir_all(&runs).unwrap();
    for (arrival, run) in (0..).zip(queued) {
        RunDir::create(&runs, *run, b"{}", &Job::queued(arrival)).unwrap();
    }
    RunQueue::recover(&AgentConfig::load(&config).unwrap()).unwrap()
}

fn connected(last_acknowledgement: Option<Instant>) -> DeliveryProgress {
    DeliveryProgress {
        connected: true,
        last_acknowledgement,
    }
}

#[test]
fn the_next_run_waits_for_the_delivery_of_earlier_ones_while_acknowledgements_arrive() {
    let root = tempfile::tempdir().unwrap();
    let [first, second] = [RunId::now(), RunId::now()];
    let mut queue = queue(root.path(), &[first, second]);
    let ended = Instant::now();
    assert_eq!(
        queue.next_start(ended, connected(None)),
        None,
        "nothing to deliver"
    );

    let ending = Ending::failed("for this test".to_owned());
    let event = queue.update(first, RunUpdate::Ended(ending), ended);
    assert!(matches!(event, Some(RunEvent::SealingDue(run)) if run == first));
    let log: StreamName = "run.log".parse().unwrap();
    let sealed = Sealed {
        streams: vec![SealedStream {
            name: log.clone(),
            length: 3,
            sha256: [7; 32],
        }],
        unread: Vec::new(),
        all_hashed: true,
        incomplete: None,
    };
    queue.set_sealed(first, sealed);

    let offline = DeliveryProgress {
        connected: false,
        last_acknowledgement: None,
    };
    assert_eq!(queue.next_start(ended, offline), None);
    let patience = ACKNOWLEDGEMENT_PATIENCE;
    assert_eq!(queue.next_start(ended, connected(None)), Some(ended + patience));
    let last = ended + Duration::from_secs(2);
    assert_eq!(
        queue.next_start(last, connected(Some(last))),
        Some(last + patience)
    );
    let late = ended + Duration::from_secs(9);
    let longest = ended + Duration::from_secs(10);
    assert_eq!(queue.next_start(late, connected(Some(late))), Some(longest));
    assert_eq!(queue.next_start(longest, connected(Some(late))), None);

    let ack = Ack {
        stream: log,
        committed: 3,
        verdict: Some(StreamVerdict::Equal),
    };
    queue.acknowledge(first, &ack, last);
    assert_eq!(
        queue.next_start(last, connected(Some(last))),
        None,
        "all is delivered"
    );
}

#[test]
fn a_run_that_is_aborted_before_its_start_command_is_never_accepted() {
    let root = tempfile::tempdir().unwrap();
    let mut queue = queue(root.path(), &[]);
    let (run, device) = (RunId::now(), "0123456789abcdef0123456789abcdef".parse().unwrap());
    let event = queue.abort(run, "not needed".to_owned(), Instant::now());
    assert!(matches!(event, Some(RunEvent::StateDue(due)) if due == run));
    let aborted = RunState {
        phase: RunPhase::Aborted,
        reason: Some("not needed".to_owned()),
        revision: 1,
    };
    assert_eq!(queue.report(run).unwrap().state, aborted);

    let events = queue.accept(run, b"{}", &device);
    assert!(matches!(&*events, [RunEvent::StateDue(due)] if *due == run));
    assert_eq!(queue.report(run).unwrap().state, aborted);
    assert_eq!(queue.inventory()[0].holding, RunHolding::Refused);

    assert!(matches!(queue.forget(run), Some(RunEvent::Removed(removed)) if removed == run));
    assert!(queue.known_ids().is_empty());
}
