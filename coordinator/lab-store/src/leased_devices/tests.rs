//! Tests of the devices that power sessions lease.

use regatta_types::documents::{EndCause, MeterSettings, RecordedFailure, RunPhase, RunState};

use super::*;
use crate::{
    Leased, NewPowerSession, RunOutcome,
    examples::{example_draft, example_record},
};

fn device(byte: &str) -> DeviceId {
    byte.repeat(16).parse().unwrap()
}

/// A store with two meters.
fn store() -> Store {
    let settings: MeterSettings = serde_json::from_str(
        r#"{"ptd": "/opt/ptd", "python": "python3", "device_type": 49, "interface": "", "device_port": "/dev/usbtmc0",
            "channel": [], "gpib_board": null, "port": 4950, "ptd_port": 8888, "ntp": "ntp"}"#,
    )
    .unwrap();
    let store = Store::open(std::path::Path::new(":memory:")).unwrap();
    for meter in ["one", "two"] {
        store.keep_meter(meter, &settings, false).unwrap();
    }
    store
}

fn begin_session(store: &Store, id: &str, device: &DeviceId) {
    let new = NewPowerSession {
        id,
        meter: "one",
        device: device.as_str(),
        benchmark: "digits",
        scenario: "Offline",
    };
    store.power_session_begins(new).unwrap();
}

#[test]
fn a_measured_device_takes_no_other_run_until_the_session_ends() {
    let (store, device) = (store(), device("ab"));
    store.lease_meter("one", "session", &device).unwrap();
    let draft = example_draft(device.clone());
    let refused = store.request_run(&draft).unwrap_err().to_string();
    assert!(
        refused.contains("power session session measures the device with the meter one"),
        "{refused}"
    );
    assert!(store.busy_devices().unwrap().contains(&device), "campaigns wait");
    let Leased::DeviceBusy(other) = store.lease_meter("two", "other", &device).unwrap() else {
        panic!("two meters measure one device");
    };
    assert_eq!(other.session, "session");
    begin_session(&store, "session", &device);
    store.request_session_run("session", true, &draft).unwrap();
    let row = store.power_session("session").unwrap().unwrap();
    assert_eq!(row.ranging, Some(draft.spec.run));
    store.fail_power_session("session", &it_broke()).unwrap();
    assert!(store.release_meter("one", "session").unwrap());
    store.request_run(&draft.repeated()).unwrap();
}

fn it_broke() -> RecordedFailure {
    RecordedFailure {
        cause: EndCause::Infrastructure,
        reason: "it broke".to_owned(),
    }
}

#[test]
fn a_device_with_runs_is_not_leased_except_with_those_of_an_ended_session() {
    let (store, device) = (store(), device("ab"));
    begin_session(&store, "ended", &device);
    let left = example_draft(device.clone());
    store.request_session_run("ended", false, &left).unwrap();
    let draft = left.repeated();
    store.request_run(&draft).unwrap();
    assert_eq!(
        store.lease_meter("one", "new", &device).unwrap(),
        Leased::DeviceHasRuns(vec![draft.spec.run])
    );
    assert!(store.request_abort(draft.spec.run, "not needed").unwrap());
    assert_eq!(
        store.lease_meter("one", "new", &device).unwrap(),
        Leased::Taken { ended: None }
    );
    assert_eq!(store.unfinished_runs(&device).unwrap(), [left.spec.run]);
}

#[test]
fn a_run_beside_a_session_is_found_while_it_is_open_and_when_it_is_recorded() {
    let (store, device) = (store(), device("ab"));
    let earlier = example_draft(device.clone());
    record(&store, &earlier);
    std::thread::sleep(std::time::Duration::from_millis(2));
    begin_session(&store, "session", &device);
    let own = earlier.repeated();
    store.request_session_run("session", true, &own).unwrap();
    store.fix_spec(own.spec.run, "aa").unwrap();
    let found = || store.runs_beside_session("session").unwrap();
    assert!(found().is_empty(), "{:?}", found());
    let other = earlier.repeated();
    store.add_run(&other).unwrap();
    assert!(found().is_empty(), "it was not sent");
    store.fix_spec(other.spec.run, "aa").unwrap();
    assert_eq!(found(), [other.spec.run]);
    record_sent(&store, &other);
    assert_eq!(found(), [other.spec.run]);
}

fn record(store: &Store, draft: &RunDraft) {
    store.add_run(draft).unwrap();
    store.fix_spec(draft.spec.run, "aa").unwrap();
    record_sent(store, draft);
}

fn record_sent(store: &Store, draft: &RunDraft) {
    let state = RunState {
        phase: RunPhase::Done,
        reason: None,
        revision: 9,
    };
    let run = draft.spec.run;
    store
        .device_reported_state(&draft.spec.device, run, &state)
        .unwrap();
    let row = store.run(run).unwrap().unwrap();
    let mut recorded = example_record(&row, &state);
    recorded.written = jiff::Timestamp::now().to_string();
    assert!(
        store
            .run_is_recorded(&row, &recorded, &RunOutcome::default())
            .unwrap()
    );
}
