//! Tests of meters and their leases.

use std::thread;

use regatta_types::documents::{EndCause, RecordedFailure};

use super::*;

fn settings() -> MeterSettings {
    serde_json::from_str(
            r#"{"power_dev": "/opt/power-dev", "ptd": "/opt/ptd", "python": "python3", "device_type": 49,
                "interface": "", "device_port": "/dev/usbtmc0", "channel": [], "gpib_board": null, "port": 4950, "ptd_port": 8888, "ntp": "ntp"}"#,
        )
        .unwrap()
}

fn device() -> DeviceId {
    "ab".repeat(16).parse().unwrap()
}

/// Gives every lease to the process that started this one.
fn belongs_to_another_process(store: &Store) {
    let parent = std::os::unix::process::parent_id();
    let parent = Holder::of(parent, parent).unwrap();
    store
        .execute(
            "UPDATE meters SET holder = ?1 WHERE session IS NOT NULL",
            params![values::to_json(&parent).unwrap()],
        )
        .unwrap();
}

#[test]
fn meter_is_leased_to_one_session_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("regatta.db")).unwrap();
    assert!(store.meters().put("lab", &settings(), false).unwrap());
    assert!(!store.meters().put("lab", &settings(), false).unwrap());
    assert_eq!(
        store.meters().lease("lab", "one", &device()).unwrap(),
        Leased::Taken { ended: None }
    );
    belongs_to_another_process(&store);
    let Leased::MeterBusy(lease) = store.meters().lease("lab", "two", &device()).unwrap() else {
        panic!("two sessions have the meter");
    };
    assert_eq!(
        (lease.session.as_str(), lease.pid()),
        ("one", std::os::unix::process::parent_id())
    );
    assert!(!store.meters().release("lab", "two").unwrap());
    assert!(store.meters().get("lab").unwrap().unwrap().lease.is_some());
    assert!(!store.meters().remove("lab").unwrap(), "a leased meter stays");
    assert!(store.meters().release("lab", "one").unwrap());
    assert_eq!(store.meters().get("lab").unwrap().unwrap().lease, None);
    assert_eq!(
        store.meters().lease("gone", "one", &device()).unwrap(),
        Leased::Gone
    );
}

#[test]
fn a_session_whose_end_is_not_stored_keeps_its_lease() {
    use crate::{NewPowerSession, PowerSessionEnd};

    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("regatta.db")).unwrap();
    store.meters().put("lab", &settings(), false).unwrap();
    store.meters().lease("lab", "one", &device()).unwrap();
    let new = NewPowerSession {
        id: "one",
        meter: "lab",
        device: "boat",
        benchmark: "digits",
        scenario: "Offline",
    };
    store.power_sessions().begin(new).unwrap();
    // As after a full disk: the lease ends with the process, and the next session stores this one's end.
    assert!(!store.meters().release("lab", "one").unwrap());
    let failure = RecordedFailure {
        cause: EndCause::Infrastructure,
        reason: "it broke".to_owned(),
    };
    let end = PowerSessionEnd {
        failure: Some(&failure),
        ..PowerSessionEnd::default()
    };
    store.power_sessions().end("one", &end).unwrap();
    assert!(store.meters().release("lab", "one").unwrap());
}

#[test]
fn a_process_that_cannot_be_seen_from_here_holds_its_lease() {
    let own = Holder::this_thread().unwrap();
    let machine = "ebb0".to_owned();
    let state = |holder: Holder| {
        let own = Holder {
            machine: machine.clone(),
            ..own.clone()
        };
        holder.is_comparable_with(&own)
    };
    let at = |boot: &str, namespace: &str, machine: &str| Holder {
        boot: boot.to_owned(),
        namespace: namespace.to_owned(),
        machine: machine.to_owned(),
        ..own.clone()
    };
    assert!(state(at(&own.boot, &own.namespace, &machine)));
    assert!(!state(at(&own.boot, "pid:[1]", &machine)), "another container");
    assert!(
        state(at("earlier", "pid:[1]", &machine)),
        "this machine was restarted"
    );
    assert!(!state(at("earlier", &own.namespace, "f100")), "another machine");
    assert!(!state(at("earlier", &own.namespace, "")), "an unknown machine");
}

#[test]
fn a_lease_ends_with_its_process() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("regatta.db")).unwrap();
    store.meters().put("lab", &settings(), false).unwrap();
    store.meters().lease("lab", "one", &device()).unwrap();
    // The same number, but another process.
    let mut other = Holder::this_thread().unwrap();
    other.started += 1;
    let json = values::to_json(&other).unwrap();
    store
        .execute("UPDATE meters SET holder = ?1", params![json])
        .unwrap();
    let Leased::Taken { ended: Some(ended) } = store.meters().lease("lab", "two", &device()).unwrap() else {
        panic!("the stale lease holds");
    };
    assert_eq!(ended.session, "one");
    assert!(store.meters().release("lab", "two").unwrap());
    assert!(store.meters().remove("lab").unwrap() && !store.meters().remove("lab").unwrap());
}

/// The coordinator has a thread for each session of its campaigns.
#[test]
fn a_lease_ends_with_its_thread_while_the_process_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("regatta.db");
    let store = Store::open(&path).unwrap();
    store.meters().put("lab", &settings(), false).unwrap();
    let state = || store.meters().get("lab").unwrap().unwrap().lease.unwrap().state();
    let (begun, wait_for_begin) = std::sync::mpsc::channel();
    let (end, wait_for_end) = std::sync::mpsc::channel::<()>();
    let session = thread::spawn(move || {
        let leased = Store::open(&path)
            .unwrap()
            .meters()
            .lease("lab", "one", &device());
        begun.send(leased.unwrap()).unwrap();
        let _ = wait_for_end.recv();
    });
    assert_eq!(wait_for_begin.recv().unwrap(), Leased::Taken { ended: None });
    assert_eq!(state(), LeaseState::Held);
    let Leased::MeterBusy(lease) = store.meters().lease("lab", "two", &device()).unwrap() else {
        panic!("two threads have the meter");
    };
    assert!(lease.is_of_campaign() && lease.pid() == std::process::id());
    drop(end);
    session.join().unwrap();
    // The kernel may show the thread for a moment.
    let begun = std::time::Instant::now();
    while state() == LeaseState::Held && begun.elapsed().as_secs() < 10 {
        thread::yield_now();
    }
    assert_eq!(state(), LeaseState::Stale);
}

/// One thread makes its sessions one after the other. A full disk may have kept the end of the last one from the store.
#[test]
fn the_next_session_of_a_thread_takes_over_the_lease_of_the_last_one() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("regatta.db")).unwrap();
    store.meters().put("lab", &settings(), false).unwrap();
    store.meters().lease("lab", "one", &device()).unwrap();
    let Leased::Taken { ended: Some(ended) } = store.meters().lease("lab", "two", &device()).unwrap() else {
        panic!("the lease of this thread holds");
    };
    assert_eq!(ended.session, "one");
}

/// A session that no lease names and that has not ended would seem to go on for ever, and its runs would not be aborted.
#[test]
fn a_stale_lease_is_replaced_only_together_with_the_end_of_its_session() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("regatta.db")).unwrap();
    store.meters().put("lab", &settings(), false).unwrap();
    store.meters().lease("lab", "one", &device()).unwrap();
    let new = crate::NewPowerSession {
        id: "one",
        meter: "lab",
        device: "boat",
        benchmark: "digits",
        scenario: "Offline",
    };
    store.power_sessions().begin(new).unwrap();
    store.refuse("power_sessions", "NEW.ended IS NOT NULL", "ABORT");
    assert!(store.meters().lease("lab", "two", &device()).is_err());
    let lease = store.meters().get("lab").unwrap().unwrap().lease;
    assert_eq!(lease.unwrap().session, "one", "the next session still finds it");
    store.refuse_nothing("power_sessions");
    store.meters().lease("lab", "two", &device()).unwrap();
    let ended = store.power_sessions().get("one").unwrap().unwrap();
    assert_eq!(
        ended.reason(),
        Some("the process of this session ended in the middle")
    );
}
