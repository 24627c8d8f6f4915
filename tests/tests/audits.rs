//! Tests of audits of a run on its device: requested, run under the round's settings, linked and verified. Whether their speed
//! passes depends on the machine; that responses are equal does not.

#![expect(clippy::expect_used, clippy::panic, reason = "test code")]

use std::{fs, path::Path, process::Output, time::Duration};

use regatta_tests::{Broker, Lab, browser_client::get_page, html_check::read_page, printed};
use rusqlite::Connection;
use serde_json::Value;

/// The simulated engine takes the same time on every machine.
const RUN: [&str; 9] = [
    "run",
    "--benchmark",
    "digits",
    "--engine",
    "sim",
    "--scenario",
    "SingleStream",
    "--duration",
    "1s",
];

fn regatta(lab: &Lab, words: &[&str]) -> Output {
    lab.regatta().args(words).output().expect("regatta starts")
}

/// Returns the runs in a command's JSON, also with exit code 1.
fn runs(lab: &Lab, words: &[&str]) -> Vec<Value> {
    let output = regatta(lab, &[words, &["--format", "json"]].concat());
    assert!(
        matches!(output.status.code(), Some(0 | 1)),
        "{words:?}: {}",
        printed(&output)
    );
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    document["runs"].as_array().expect("runs").clone()
}

fn refused(lab: &Lab, words: &[&str], code: i32, because: &str) {
    let output = regatta(lab, words);
    let printed = printed(&output);
    assert!(
        output.status.code() == Some(code) && printed.contains(because),
        "{words:?}: {}\n{printed}",
        output.status
    );
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn audits_repeat_a_run_on_its_device_and_are_held_against_it() {
    let Some(mut lab) = Lab::new(Broker::Embedded) else {
        return;
    };
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();
    let audit = ["audit", "run", "--benchmark", "digits"];

    // Wrong orders of steps: nothing to audit, then no responses to compare with.
    refused(&lab, &audit, 2, "valid performance run");
    let performance = runs(&lab, &[&RUN[..], &["--mode", "PerformanceOnly"]].concat()).remove(0);
    refused(&lab, &audit, 2, "--mode AccuracyOnly");
    let accuracy = runs(&lab, &[&RUN[..], &["--mode", "AccuracyOnly"]].concat()).remove(0);
    refused(
        &lab,
        &["audit", "run", "TEST05", "--benchmark", "digits"],
        2,
        "has no TEST05",
    );

    let audits = runs(&lab, &audit);
    let names: Vec<_> = audits.iter().map(|run| run["test"].as_str()).collect();
    assert_eq!(names, [Some("TEST01"), Some("TEST04")], "all that the round has");
    for run in &audits {
        let id = run["run"].as_str().expect("an id");
        let directory = lab.workspace().join("runs").join(id);
        let record: Value = serde_json::from_str(&read(&directory.join("record.json"))).expect("a record");
        let result = &record["audit"];
        let test = result["test"].as_str().expect("an audit");
        assert_eq!(
            result["speeds"],
            Value::Array(lines(&directory, test)),
            "{result}"
        );
        assert_eq!(result["fault"], Value::Null, "{result}");
        assert_eq!(result["observations"], Value::Array(Vec::new()), "{result}");

        let spec: Value = serde_json::from_str(&read(&directory.join("spec.json"))).expect("a spec");
        assert_eq!(spec["audit"]["performance"], performance["run"]);
        assert_eq!(spec["audit"]["accuracy"], accuracy["run"]);
        let of_run = lab
            .workspace()
            .join("runs")
            .join(performance["run"].as_str().expect("an id"));
        assert_eq!(
            read(&directory.join("files/user.conf")),
            read(&of_run.join("files/user.conf")),
            "an audit is the same run"
        );
        let logged = read(&directory.join("files/mlperf_log_detail.txt"));
        assert!(logged.contains("Found Audit Config file"), "{test}");
    }
    let responses = &audits[0]["audit"]["responses"];
    assert!(
        responses["compared"].as_u64() > Some(0) && responses["differing"] == 0,
        "{responses}"
    );

    // Verified again, verdict and record are the same.
    let again = audits[0]["run"].as_str().expect("an id");
    let record = lab.workspace().join("runs").join(again).join("record.json");
    let before = read(&record);
    let verified = regatta(&lab, &["audit", "verify", "TEST01", "--run", again]);
    assert!(
        matches!(verified.status.code(), Some(0 | 1)),
        "{}",
        printed(&verified)
    );
    assert_eq!(read(&record), before);
    refused(
        &lab,
        &["audit", "verify", "TEST04", "--run", again],
        2,
        "is not an audit of TEST04",
    );

    a_failed_audit_is_known_before_everything_else_is_in_order(&lab, &audits);

    // A truncated log is no longer the delivered one.
    let log = lab
        .workspace()
        .join("runs")
        .join(accuracy["run"].as_str().expect("an id"))
        .join("files/mlperf_log_accuracy.json");
    let whole = fs::read(&log).expect("the accuracy log");
    fs::write(&log, &whole[..whole.len() / 2]).expect("cut");
    refused(&lab, &audit, 3, "run audits before truncating");
}

/// Records TEST01 as failed and TEST04 as passed, and reads the page and what staging refuses.
fn a_failed_audit_is_known_before_everything_else_is_in_order(lab: &Lab, audits: &[Value]) {
    let store = Connection::open(lab.workspace().join("regatta.db")).expect("the store");
    store.busy_timeout(Duration::from_secs(20)).expect("a time limit");
    for (audit, passed) in audits.iter().zip([false, true]) {
        let id = audit["run"].as_str().expect("an id");
        let path = lab.workspace().join("runs").join(id).join("record.json");
        let mut record: Value = serde_json::from_str(&read(&path)).expect("a record");
        record["audit"]["passed"] = passed.into();
        fs::write(&path, record.to_string()).expect("the record");
        let value = if passed { "true" } else { "false" };
        let changed = store.execute(
            "UPDATE runs SET outcome = json_set(outcome, '$.audit.passed', json(?2)) WHERE id = ?1",
            [id, value],
        );
        assert_eq!(changed.expect("the store is writable"), 1);
    }
    let page = get_page(&lab.page_url(), "/submission").body;
    let failed = audits[0]["run"].as_str().expect("an id");
    let shown = format!("<a class=\"badge v-bad\" href=\"/run/{failed}\">TEST01 FAIL</a>");
    assert!(page.contains(&shown), "{shown}: {page}");
    let text = read_page(&page).text;
    for part in [
        "TEST04 PASS",
        "VALID",
        " ms",
        "the audit TEST01 fails",
        "regatta audit run TEST01",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let tree = lab.scratch().join("tree");
    let tree = tree.to_str().expect("UTF-8");
    let words = ["submission", "stage", "--division", "closed", "--output", tree];
    refused(lab, &words, 1, "the audit TEST01 fails");
}

/// Returns the official script's lines, which the record repeats.
fn lines(directory: &Path, test: &str) -> Vec<Value> {
    let text = read(&directory.join("audit").join(test).join("verify_performance.txt"));
    text.lines().map(Value::from).collect()
}

/// Older LoadGens printed `90th` where the current one prints `90.0th`.
#[test]
fn audits_of_older_rounds_read_the_scores_of_todays_loadgen() {
    let Some(mut lab) = Lab::new(Broker::Embedded) else {
        return;
    };
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();
    let round = ["--round", "v2.1", "--mode", "AccuracyOnly,PerformanceOnly"];
    assert_eq!(runs(&lab, &[&RUN[..], &round].concat()).len(), 2);
    let audits = runs(&lab, &["audit", "run", "--benchmark", "digits"]);
    let names: Vec<_> = audits.iter().map(|run| run["test"].as_str()).collect();
    assert_eq!(names, [Some("TEST01"), Some("TEST04"), Some("TEST05")]);
    for audit in &audits {
        let scores = &audit["audit"]["scores"];
        for score in ["reference", "audited"] {
            assert!(scores[score].as_f64() > Some(0.0), "{audit:#}");
        }
    }
}

#[test]
fn test05_draws_from_the_rounds_other_seeds() {
    let Some(mut lab) = Lab::new(Broker::Embedded) else {
        return;
    };
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();
    let measured = runs(
        &lab,
        &[
            &RUN[..],
            &["--round", "v4.1", "--mode", "AccuracyOnly,PerformanceOnly"],
        ]
        .concat(),
    );
    assert_eq!(measured.len(), 2);
    let audit = runs(&lab, &["audit", "run", "TEST05", "--benchmark", "digits"]).remove(0);
    assert_eq!(audit["audit"]["fault"], Value::Null, "{audit:#}");
    // Seeds of the submission's run would be observed.
    assert_eq!(
        audit["audit"]["observations"],
        Value::Array(Vec::new()),
        "{audit:#}"
    );
    let log = lab
        .workspace()
        .join("runs")
        .join(audit["run"].as_str().expect("an id"))
        .join("files/mlperf_log_detail.txt");
    let log = read(&log);
    let seed = |name: &str| {
        let key = format!("\"effective_{name}_rng_seed\", \"value\": ");
        let (_, rest) = log.split_once(&key).expect("a seed");
        rest.split(',').next().map(str::to_owned).expect("a value")
    };
    // mlcommons/inference v4.1, mlperf.conf: test05_*.
    assert_eq!(
        ["qsl", "sample_index", "schedule"].map(seed),
        [
            "16799458546791641818",
            "5453809927556429288",
            "5435552105434836064"
        ]
    );
}
