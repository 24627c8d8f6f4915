//! Tests of the devices that power sessions lease.

use regatta_types::documents::{EndCause, MeterSettings, RecordedFailure, RunPhase, RunState};

use super::*;
use crate::{
    Leased, NewPowerSession, RunOutcome, Store,
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
        store.meters().put(meter, &settings, false).unwrap();
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
    store.power_sessions().begin(new).unwrap();
}

#[test]
fn a_measured_device_takes_no_other_run_until_the_session_ends() {
    let (store, device) = (store(), device("ab"));
    store.meters().lease("one", "session", &device).unwrap();
    let draft = example_draft(device.clone());
    let refused = store.runs().request(&draft).unwrap_err().to_string();
    assert!(
        refused.contains("power session session measures the device with the meter one"),
        "{refused}"
    );
    assert!(
        store.attempts().busy_devices().unwrap().contains(&device),
        "campaigns wait"
    );
    let Leased::DeviceBusy(other) = store.meters().lease("two", "other", &device).unwrap() else {
        panic!("two meters measure one device");
    };
    assert_eq!(other.session, "session");
    begin_session(&store, "session", &device);
    store.runs().request_of_session("session", true, &draft).unwrap();
    let row = store.power_sessions().get("session").unwrap().unwrap();
    assert_eq!(row.ranging, Some(draft.spec.run));
    store.power_sessions().fail("session", &it_broke()).unwrap();
    assert!(store.meters().release("one", "session").unwrap());
    store.runs().request(&draft.repeated()).unwrap();
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
    store.runs().request_of_session("ended", false, &left).unwrap();
    let draft = left.repeated();
    store.runs().request(&draft).unwrap();
    assert_eq!(
        store.meters().lease("one", "new", &device).unwrap(),
        Leased::DeviceHasRuns(vec![draft.spec.run])
    );
    assert!(store.runs().request_abort(draft.spec.run, "not needed").unwrap());
    assert_eq!(
        store.meters().lease("one", "new", &device).unwrap(),
        Leased::Taken { ended: None }
    );
    assert_eq!(store.runs().unfinished(&device).unwrap(), [left.spec.run]);
}

#[test]
fn a_run_beside_a_session_is_found_while_it_is_open_and_when_it_is_recorded() {
    let (store, device) = (store(), device("ab"));
    let earlier = example_draft(device.clone());
    record(&store, &earlier);
    std::thread::sleep(std::time::Duration::from_millis(2));
    begin_session(&store, "session", &device);
    let own = earlier.repeated();
    store.runs().request_of_session("session", true, &own).unwrap();
    store.runs().fix_spec(own.spec.run, "aa").unwrap();
    let found = || store.runs().beside_session("session").unwrap();
    assert!(found().is_empty(), "{:?}", found());
    let other = earlier.repeated();
    store.runs().add(&other).unwrap();
    assert!(found().is_empty(), "it was not sent");
    store.runs().fix_spec(other.spec.run, "aa").unwrap();
    assert_eq!(found(), [other.spec.run]);
    record_sent(&store, &other);
    assert_eq!(found(), [other.spec.run]);
}

fn record(store: &Store, draft: &RunDraft) {
    store.runs().add(draft).unwrap();
    store.runs().fix_spec(draft.spec.run, "aa").unwrap();
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
        .runs()
        .record_state(&draft.spec.device, run, &state)
        .unwrap();
    let row = store.runs().get(run).unwrap().unwrap();
    let mut recorded = example_record(&row, &state);
    recorded.written = jiff::Timestamp::now().to_string();
    assert!(
        store
            .runs()
            .record(&row, &recorded, &RunOutcome::default())
            .unwrap()
    );
}
