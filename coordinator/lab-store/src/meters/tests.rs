//! Tests of meters and their leases.

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
    let parent = Holder::of(std::os::unix::process::parent_id()).unwrap();
    store
        .connection
        .execute(
            "UPDATE meters SET holder = ?1 WHERE session IS NOT NULL",
            [json(&parent).unwrap()],
        )
        .unwrap();
}

#[test]
fn meter_is_leased_to_one_session_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("regatta.db")).unwrap();
    assert!(store.keep_meter("lab", &settings(), false).unwrap());
    assert!(!store.keep_meter("lab", &settings(), false).unwrap());
    assert_eq!(
        store.lease_meter("lab", "one", &device()).unwrap(),
        Leased::Taken { ended: None }
    );
    belongs_to_another_process(&store);
    let Leased::MeterBusy(lease) = store.lease_meter("lab", "two", &device()).unwrap() else {
        panic!("two sessions have the meter");
    };
    assert_eq!(
        (lease.session.as_str(), lease.pid()),
        ("one", std::os::unix::process::parent_id())
    );
    assert!(!store.release_meter("lab", "two").unwrap());
    assert!(store.meter("lab").unwrap().unwrap().lease.is_some());
    assert!(!store.drop_meter("lab").unwrap(), "a leased meter stays");
    assert!(store.release_meter("lab", "one").unwrap());
    assert_eq!(store.meter("lab").unwrap().unwrap().lease, None);
    assert_eq!(store.lease_meter("gone", "one", &device()).unwrap(), Leased::Gone);
}

#[test]
fn a_session_whose_end_is_not_stored_keeps_its_lease() {
    use crate::{NewPowerSession, PowerSessionEnd};

    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("regatta.db")).unwrap();
    store.keep_meter("lab", &settings(), false).unwrap();
    store.lease_meter("lab", "one", &device()).unwrap();
    let new = NewPowerSession {
        id: "one",
        meter: "lab",
        device: "boat",
        benchmark: "digits",
        scenario: "Offline",
    };
    store.power_session_begins(new).unwrap();
    // As after a full disk: the lease ends with the process, and the next session stores this one's end.
    assert!(!store.release_meter("lab", "one").unwrap());
    let end = PowerSessionEnd {
        reason: Some("it broke"),
        ..PowerSessionEnd::default()
    };
    store.power_session_ends("one", &end).unwrap();
    assert!(store.release_meter("lab", "one").unwrap());
}

#[test]
fn a_process_that_cannot_be_seen_from_here_holds_its_lease() {
    let own = Holder::of(std::process::id()).unwrap();
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
    store.keep_meter("lab", &settings(), false).unwrap();
    store.lease_meter("lab", "one", &device()).unwrap();
    // The same number, but another process.
    let mut other = Holder::of(std::process::id()).unwrap();
    other.started += 1;
    let json = json(&other).unwrap();
    store
        .connection
        .execute("UPDATE meters SET holder = ?1", [json])
        .unwrap();
    let Leased::Taken { ended: Some(ended) } = store.lease_meter("lab", "two", &device()).unwrap() else {
        panic!("the stale lease holds");
    };
    assert_eq!(ended.session, "one");
    assert!(store.release_meter("lab", "two").unwrap());
    assert!(store.drop_meter("lab").unwrap() && !store.drop_meter("lab").unwrap());
}

/// One process makes its sessions one after the other. A full disk may have kept the end of the last one from the store.
#[test]
fn the_next_session_of_a_process_takes_over_the_lease_of_the_last_one() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("regatta.db")).unwrap();
    store.keep_meter("lab", &settings(), false).unwrap();
    store.lease_meter("lab", "one", &device()).unwrap();
    let Leased::Taken { ended: Some(ended) } = store.lease_meter("lab", "two", &device()).unwrap() else {
        panic!("the lease of this process holds");
    };
    assert_eq!(ended.session, "one");
}

/// A session that no lease names and that has not ended would seem to go on for ever, and its runs would not be aborted.
#[test]
fn a_stale_lease_is_replaced_only_together_with_the_end_of_its_session() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("regatta.db")).unwrap();
    store.keep_meter("lab", &settings(), false).unwrap();
    store.lease_meter("lab", "one", &device()).unwrap();
    let new = crate::NewPowerSession {
        id: "one",
        meter: "lab",
        device: "boat",
        benchmark: "digits",
        scenario: "Offline",
    };
    store.power_session_begins(new).unwrap();
    let fails =
        "CREATE TRIGGER full BEFORE UPDATE OF ended ON power_sessions BEGIN SELECT RAISE(ABORT, 'full'); END";
    store.connection.execute_batch(fails).unwrap();
    assert!(store.lease_meter("lab", "two", &device()).is_err());
    let lease = store.meter("lab").unwrap().unwrap().lease;
    assert_eq!(lease.unwrap().session, "one", "the next session still finds it");
    store.connection.execute_batch("DROP TRIGGER full").unwrap();
    store.lease_meter("lab", "two", &device()).unwrap();
    let ended = store.power_session("one").unwrap().unwrap();
    assert_eq!(
        ended.reason.as_deref(),
        Some("the process of this session ended in the middle")
    );
}
