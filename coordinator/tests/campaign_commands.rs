//! Tests of commands about campaigns over the real coordinator: refused plans, and requests of a user.

#![expect(clippy::unwrap_used, reason = "test code")]

mod support;

use std::fs;

use regatta_types::documents::RunPhase;
use support::{coordinator::Coordinator, device::SimulatedDevice, eventually};

const CELLS: &str = "[[cells]]\nbenchmark = \"digits\"\nscenario = [\"Offline\"]\nengine = \"null\"\n";
const BOTH_MODES: &str = "mode = [\"AccuracyOnly\", \"PerformanceOnly\"]\n";

fn with_devices(count: u8) -> (Coordinator, Vec<SimulatedDevice>) {
    let mut coordinator = Coordinator::embedded();
    coordinator.serve();
    let devices = (1..=count)
        .map(|seed| {
            let device = SimulatedDevice::connect(coordinator.port, seed);
            device.say_hello(Vec::new());
            device
        })
        .collect();
    eventually("the devices", 30, || {
        let listed = coordinator.json(&["device", "list"]);
        let online = listed["devices"].as_array().unwrap().clone();
        let online = online.iter().filter(|found| found["online"] == true);
        (online.count() == usize::from(count)).then_some(())
    });
    (coordinator, devices)
}

impl Coordinator {
    fn plan(&self, text: &str) -> String {
        let path = self.path("plan.toml");
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn exit(&self, args: &[&str]) -> (Option<i32>, String) {
        let output = self.output(args);
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    }
}

#[test]
fn plans_that_cannot_run_are_refused_with_line_reason_and_remedy() {
    let (coordinator, _devices) = with_devices(2);
    let head = "schema = 1\nname = \"w\"\n";
    let all = "devices = [\"all\"]\n";
    for (text, words) in [
        (
            format!("{head}{CELLS}"),
            "line 4: these cells name no device, and 2 are known",
        ),
        (
            format!("{head}{CELLS}placement = \"same\"\n"),
            "placement is same",
        ),
        (
            format!("{head}{CELLS}{all}placement = \"some\"\n"),
            "line 8: unknown placement `some`; known are any, each, same",
        ),
        (
            format!("{head}{CELLS}devices = [\n\"boatt\"]\n"),
            "line 8: unknown device `boatt`; known are",
        ),
        (
            format!("{head}{CELLS}labels = [\"orin\"]\n"),
            "line 7: no device has the label `orin`",
        ),
        (
            format!("{head}{}{all}", CELLS.replace("digits", "digitz")),
            "line 4: unknown benchmark `digitz`",
        ),
        (
            format!("{head}{}{all}", CELLS.replace("Offline", "Online")),
            "line 5: unknown scenario `Online`",
        ),
        (
            format!("{head}{CELLS}{all}mode = [\"Fast\"]\n"),
            "line 8: unknown mode `Fast`",
        ),
        (
            format!("{head}{CELLS}{all}set = {{ batch_sise = 2 }}\n"),
            "line 8: there is no engine setting `batch_sise`; hint: did you mean `batch_size`?",
        ),
        (
            format!("{head}{CELLS}{all}benchmrk = \"digits\"\n"),
            "line 8: unknown field `benchmrk`",
        ),
        (
            format!("{head}{CELLS}{all}engine = \"tract\"\n"),
            "line 8: duplicate key",
        ),
        (
            format!("{head}{}{all}", CELLS.replace("null", "tensorrt")),
            "the engine `tensorrt` cannot run on simulated",
        ),
        (
            format!("{head}{CELLS}{all}audits = [\"TEST01\"]\n"),
            "line 8: an audit compares a performance run with an accuracy run",
        ),
        (
            format!("{head}{CELLS}{all}{BOTH_MODES}audits = [\"TEST01\"]\n"),
            "line 9: an audit needs both of its runs on one device, and placement `any` may spread them over 2",
        ),
        (
            format!("{head}{CELLS}{all}{BOTH_MODES}placement = \"each\"\naudits = [\n\"TEST99\"]\n"),
            "line 11: round v6.1 has no TEST99; it has TEST01, TEST04",
        ),
        (
            format!(
                "{head}{}{all}{BOTH_MODES}placement = \"each\"\naudits = [\"TEST04\"]\n",
                CELLS.replace("digits", "bert-99")
            ),
            "line 10: round v6.1 requires no TEST04 of bert-99, but TEST01",
        ),
        (format!("{head}{CELLS}{all}repeat = 0\n"), "line 8: `repeat` is 0"),
        (
            format!("{head}{CELLS}{all}repeat = 1000000000000\n"),
            "the campaign to 1000000000000 cells; the maximum is 100000",
        ),
        (
            format!("{head}{CELLS}{all}settings = [{{ name = \"a\" }},\n{{ name = \"a\" }}]\n"),
            "line 9: two variants have the name `a`",
        ),
        (
            format!("{head}deadline = \"2020-01-01T00:00:00Z\"\n{CELLS}{all}"),
            "line 3: the deadline 2020-01-01T00:00:00Z has passed",
        ),
        (format!("{head}{CELLS}{all}\n[["), "line 9"),
        (head.to_owned(), "the plan has no [[cells]]"),
    ] {
        let plan = coordinator.plan(&text);
        for command in ["plan", "start"] {
            let (code, errors) = coordinator.exit(&["campaign", command, &plan]);
            assert_eq!(code, Some(2), "{text}: {errors}");
            assert!(
                errors.contains(words) && errors.contains("plan.toml"),
                "{text}: {errors}"
            );
        }
    }
    assert_eq!(
        coordinator.json(&["campaign", "list"])["campaigns"],
        serde_json::json!([])
    );
    assert_eq!(coordinator.json(&["runs", "list"])["runs"], serde_json::json!([]));
    let (code, errors) = coordinator.exit(&["campaign", "status"]);
    assert!(
        code == Some(2) && errors.contains("no campaign was started yet"),
        "{errors}"
    );
}

#[test]
fn a_campaign_is_paused_continued_and_aborted() {
    let (coordinator, mut devices) = with_devices(1);
    let device = &mut devices[0];
    let plan = coordinator.plan(&format!("schema = 1\nname = \"w\"\n{CELLS}repeat = 3\n"));
    coordinator.json(&["campaign", "start", &plan]);
    let (first, _) = device.next_start();
    assert!(coordinator.output(&["campaign", "pause", "w"]).status.success());
    let (code, errors) = coordinator.exit(&["campaign", "pause", "w"]);
    assert!(
        code == Some(0) && errors.contains("campaign w was paused already"),
        "{errors}"
    );
    device.tell(first, RunPhase::Running, &[]);
    device.tell(first, RunPhase::Failed, &[]);
    let status = || {
        let output = coordinator.output(&["campaign", "status", "--format", "json"]);
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };
    eventually("the attempt to end", 30, || {
        (status()["failed"] == 1).then_some(())
    });
    assert_eq!(
        (&status()["state"], &status()["waiting"]),
        (&"paused".into(), &2.into())
    );
    assert!(coordinator.output(&["campaign", "resume", "w"]).status.success());
    let (second, _) = device.next_start();
    assert_ne!(first, second);
    let (code, errors) = coordinator.exit(&["campaign", "retry", "w", "--cause", "invalid"]);
    assert!(
        code == Some(2) && errors.contains("no cell of campaign w failed with the cause invalid"),
        "{errors}"
    );
    let cause = status()["failed_cells"][0]["cause"].as_str().unwrap().to_owned();
    assert_eq!(
        coordinator.json(&["campaign", "retry", "w", "--cause", &cause])["retried"],
        1
    );
    assert_eq!(
        (&status()["failed"], &status()["waiting"]),
        (&0.into(), &2.into())
    );
    let (code, errors) = coordinator.exit(&["campaign", "abort", "w"]);
    assert_eq!(code, Some(2), "without a terminal it needs --yes: {errors}");
    assert!(
        coordinator
            .output(&["campaign", "abort", "w", "--yes"])
            .status
            .success()
    );
    device.tell(second, RunPhase::Aborted, &[]);
    eventually("the campaign to end", 30, || {
        (status()["state"] == "aborted").then_some(())
    });
    let ended = status();
    assert_eq!((&ended["failed"], &ended["skipped"]), (&1.into(), &2.into()));
    assert_eq!(ended["causes"], serde_json::json!({ "operator": 1 }));
    let (code, errors) = coordinator.exit(&["campaign", "retry", "w", "--cause", "operator"]);
    assert!(
        code == Some(2) && errors.contains("campaign w was aborted"),
        "{errors}"
    );
}

/// A deadline may have been wrong, or may have seemed to pass by a wrong clock: what was skipped because of it is not lost.
#[test]
fn a_deadline_is_moved_and_its_skipped_cells_are_tried_again() {
    let (mut coordinator, _devices) = with_devices(1);
    coordinator.kill();
    let plan = coordinator.plan(&format!(
        "schema = 1\nname = \"w\"\ndeadline = \"1h\"\n{CELLS}repeat = 3\n"
    ));
    coordinator.json(&["campaign", "start", &plan]);
    let retry = ["campaign", "retry", "w", "--skipped"];
    let (code, errors) = coordinator.exit(&retry);
    assert!(
        code == Some(2) && errors.contains("no cell of campaign w was skipped"),
        "{errors}"
    );
    let passed = "2026-01-01T00:00:00Z";
    let store = rusqlite::Connection::open(coordinator.path("regatta.db")).unwrap();
    store
        .execute_batch(&format!(
            "UPDATE cells SET state = 'skipped', reason = 'the deadline {passed} passed';
             UPDATE campaigns SET deadline = '{passed}', ended = '{passed}'"
        ))
        .unwrap();
    let (code, errors) = coordinator.exit(&retry);
    assert!(
        code == Some(2) && errors.contains("campaign deadline w --until TIME"),
        "{errors}"
    );
    for (words, problem) in [
        (&["--until", passed][..], "has passed"),
        (&["--until", "soon"], "is neither a time"),
        (&[], "--until"),
    ] {
        let (code, errors) = coordinator.exit(&[&["campaign", "deadline", "w"], words].concat());
        assert!(code == Some(2) && errors.contains(problem), "{words:?}: {errors}");
    }
    let moved = coordinator.json(&["campaign", "deadline", "w", "--until", "2h"]);
    assert_eq!(moved["skipped"], 3, "{moved}");
    assert!(moved["deadline"].as_str().unwrap() > passed, "{moved}");
    assert_eq!(coordinator.json(&retry)["retried"], 3);
    let output = coordinator.output(&["campaign", "status", "w", "--format", "json"]);
    let status: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&status["waiting"], &status["skipped"], &status["state"]),
        (&3.into(), &0.into(), &"running".into()),
        "{status}"
    );
    let removed = coordinator.json(&["campaign", "deadline", "w", "--none"]);
    assert_eq!(removed["deadline"], serde_json::Value::Null);
    let log = coordinator.json(&["campaign", "log", "w"]);
    let log = log["log"].as_array().unwrap();
    let changes: Vec<&str> = log
        .iter()
        .map(|entry| entry["change"].as_str().unwrap())
        .collect();
    assert_eq!(changes, ["deadline moved", "retried", "deadline removed"]);
    assert_eq!(log[0]["deadline"], moved["deadline"]);
}

#[test]
fn cells_of_a_drained_device_end_and_are_tried_again_on_request() {
    let (coordinator, devices) = with_devices(1);
    let plan = coordinator.plan(&format!(
        "schema = 1\nname = \"w\"\nlose_device_after = \"1s\"\n{CELLS}"
    ));
    let drained = coordinator.output(&["device", "drain", "simulated"]);
    assert!(drained.status.success());
    coordinator.json(&["campaign", "start", &plan]);
    let status = || {
        let output = coordinator.output(&["campaign", "status", "--format", "json"]);
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };
    eventually("the campaign to end", 30, || {
        (status()["state"] == "ended").then_some(())
    });
    let cell = &status()["failed_cells"][0];
    assert_eq!(cell["cause"], "operator");
    assert_eq!(
        cell["reason"],
        "no device has taken it for 1 s: simulated is in maintenance"
    );
    let resumed = coordinator.output(&["device", "resume", "simulated"]);
    assert!(resumed.status.success());
    coordinator.json(&["campaign", "retry", "w", "--cause", "operator"]);
    devices[0].next_start();
    assert_eq!(
        (&status()["state"], &status()["running"]),
        (&"running".into(), &1.into())
    );
}
