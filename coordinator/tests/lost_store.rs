//! Tests of a workspace with runs and without `regatta.db`: every command says so, and `runs rebuild` makes the store from the
//! records.

#![expect(clippy::unwrap_used, reason = "test code")]

mod support;

use std::{collections::BTreeMap, fs, process::Output};

use regatta_types::{RunId, documents::RunPhase};
use support::{Dice, coordinator::Coordinator, delivering::Faults, device::SimulatedDevice, eventually};

fn wait_until_online(coordinator: &Coordinator) {
    eventually("the device", 30, || {
        coordinator.json(&["device", "list"])["devices"][0]["online"]
            .as_bool()
            .filter(|online| *online)
    });
}

/// Returns a workspace without a daemon, with a recorded run and one that its device has begun.
fn with_two_runs() -> (Coordinator, String, (RunId, Vec<u8>)) {
    let mut coordinator = Coordinator::embedded();
    coordinator.serve();
    let mut device = SimulatedDevice::connect(coordinator.port, 1);
    device.say_hello(Vec::new());
    wait_until_online(&coordinator);
    let recorded = coordinator.request_run("PerformanceOnly");
    device.play(Faults::default(), &mut Dice::new(3));
    coordinator.record(&recorded);
    coordinator.request_run("PerformanceOnly");
    let begun = device.next_start();
    device.tell(begun.0, RunPhase::Running, &[]);
    coordinator.kill();
    (coordinator, recorded, begun)
}

fn lose_store(coordinator: &Coordinator, empty: bool) {
    for name in ["regatta.db", "regatta.db-wal", "regatta.db-shm"] {
        let _ = fs::remove_file(coordinator.path(name));
    }
    if empty {
        fs::write(coordinator.path("regatta.db"), "").unwrap();
    }
}

fn code_and_text(output: &Output) -> (Option<i32>, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

#[test]
fn a_lost_store_is_reported_and_rebuilt_from_the_records() {
    let (mut coordinator, recorded, (begun, spec)) = with_two_runs();
    let before = coordinator.show(&recorded);
    // As `submission stage` writes it.
    let tree = serde_json::json!([{ "tree": coordinator.path(""), "staged": "2026-11-23T00:00:00Z" }]);
    fs::write(
        coordinator.path(&format!("runs/{recorded}/staged.json")),
        tree.to_string(),
    )
    .unwrap();
    for empty in [false, true] {
        lose_store(&coordinator, empty);
        for words in [&["runs", "list"][..], &["runs", "verify"], &["serve"]] {
            let (code, printed) = code_and_text(&coordinator.output(words));
            assert_eq!(code, Some(3), "{words:?}: {printed}");
            assert!(
                printed.contains("1 recorded runs that are not in it")
                    && printed.contains("regatta runs rebuild"),
                "{words:?}: {printed}"
            );
        }
    }
    let (code, printed) = code_and_text(&coordinator.output(&["runs", "rebuild"]));
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("1 recorded and 1 unfinished"), "{printed}");
    assert_eq!(
        coordinator.show(&recorded),
        before,
        "all that was known of the run is known again"
    );
    assert_eq!(coordinator.output(&["runs", "verify"]).status.code(), Some(0));
    let (code, printed) = code_and_text(&coordinator.output(&["runs", "remove", &recorded, "--yes"]));
    assert!(
        code == Some(2) && printed.contains("it is staged in"),
        "{printed}"
    );
    let (code, printed) = code_and_text(&coordinator.output(&["runs", "rebuild"]));
    assert!(
        code == Some(0) && printed.contains("0 recorded and 0 unfinished"),
        "{printed}"
    );

    // The run that its device had begun arrives and is recorded.
    coordinator.serve();
    let mut device = SimulatedDevice::connect(coordinator.port, 1);
    device.say_hello(vec![begun]);
    wait_until_online(&coordinator);
    let mut files = BTreeMap::from([("run.log".to_owned(), b"a log\n".to_vec())]);
    device.seal(begun, &spec, &mut files);
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    device.tell(begun, RunPhase::Draining, &names);
    device.deliver(begun, &files, Faults::default(), &mut Dice::new(5), |_| {});
    device.tell(begun, RunPhase::Done, &names);
    let record = coordinator.record(&begun.to_string());
    assert_eq!(record["delivery"]["complete"], true, "{record}");
}

#[test]
fn a_damaged_run_is_not_believed_when_the_store_is_made_again() {
    let (coordinator, recorded, _) = with_two_runs();
    let log = coordinator.path(&format!("runs/{recorded}/files/run.log"));
    let mut bytes = fs::read(&log).unwrap();
    bytes[100] ^= 1;
    fs::write(&log, bytes).unwrap();
    lose_store(&coordinator, false);
    let (code, printed) = code_and_text(&coordinator.output(&["runs", "rebuild"]));
    assert_eq!(code, Some(1), "{printed}");
    assert!(
        printed.contains("run.log is not what the evidence says"),
        "{printed}"
    );
    let run = coordinator.show(&recorded);
    assert_eq!(run["complete"], false, "{run}");
    assert_eq!(coordinator.output(&["runs", "verify"]).status.code(), Some(1));
}
