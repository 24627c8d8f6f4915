//! Tests of the path to a submission: `run --submission` measures everything that the results need in one campaign, and `submission status` shows the
//! complete and the missing parts and the next command.

#![expect(clippy::expect_used, reason = "test code")]

use std::{fs, path::Path, process::Output};

use regatta_tests::{Broker, Lab, json_schema::findings, printed};
use serde_json::Value;

fn regatta(lab: &Lab, words: &[&str]) -> Output {
    lab.regatta().args(words).output().expect("regatta starts")
}

fn refused(lab: &Lab, words: &[&str], because: &str) {
    let output = regatta(lab, words);
    let printed = printed(&output);
    assert!(
        output.status.code() == Some(2) && printed.contains(because),
        "{words:?}: {}\n{printed}",
        output.status
    );
}

/// Returns the document that a command prints. The exit code may be 1.
fn document(lab: &Lab, words: &[&str]) -> Value {
    let output = regatta(lab, &[words, &["--format", "json"]].concat());
    assert!(
        matches!(output.status.code(), Some(0 | 1)),
        "{words:?}: {}",
        printed(&output)
    );
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Returns the results of a status document, which must match `coordinator/commands.schema.json`.
fn results(status: &Value) -> &Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../coordinator/commands.schema.json");
    let schema = fs::read_to_string(path).expect("the schema");
    let schema = serde_json::from_str(&schema).expect("JSON");
    let found = findings(status, &schema, "submission_status");
    assert!(found.is_empty(), "{found:?}\n{status:#}");
    status["results"].as_array().expect("results")
}

const SUBMISSION: [&str; 7] = [
    "run",
    "--benchmark",
    "digits",
    "--submission",
    "--duration",
    "1s",
    "--local-files",
];

#[test]
fn a_submission_is_measured_as_one_campaign_and_continues_where_it_stopped() {
    let Some(mut lab) = Lab::new(Broker::Embedded) else {
        return;
    };
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();

    let before = regatta(&lab, &["submission", "status"]);
    assert_eq!(before.status.code(), Some(1), "{}", printed(&before));
    assert!(printed(&before).contains("--submission"), "{}", printed(&before));

    // A dry run does not queue anything.
    let plan = document(&lab, &[&SUBMISSION[..], &["--dry-run"]].concat());
    let combinations = plan["combinations"].as_array().expect("combinations");
    let audits = combinations.iter().filter(|row| row["audit"].is_string()).count();
    // Three scenarios, each with both modes and two audits.
    assert_eq!((combinations.len(), audits), (12, 6), "{plan:#}");
    assert!(
        combinations.iter().all(|row| row["devices"][0] == "boat"),
        "{plan:#}"
    );
    assert!(
        lab.json(&["campaign", "list"])["campaigns"]
            .as_array()
            .expect("a list")
            .is_empty()
    );

    // A submission that cannot succeed is refused before anything is queued.
    refused(&lab, &SUBMISSION[..6], "no asset has");
    refused(
        &lab,
        &[&SUBMISSION[..], &["--scenario", "Server"]].concat(),
        "no Server of digits for edge systems",
    );
    refused(
        &lab,
        &[
            "run",
            "--benchmark",
            "3d-unet-99",
            "--submission",
            "--scenario",
            "MultiStream",
        ],
        "no MultiStream of 3d-unet-99",
    );
    refused(
        &lab,
        &["run", "--benchmark", "resnet50", "--submission"],
        "has no official LoadGen",
    );

    let status = document(&lab, &SUBMISSION);
    let scenarios: Vec<&str> = results(&status)
        .iter()
        .map(|result| result["scenario"].as_str().expect("a scenario"))
        .collect();
    assert_eq!(
        scenarios,
        ["SingleStream", "MultiStream", "Offline"],
        "{status:#}"
    );
    for result in results(&status) {
        for part in ["accuracy", "performance"] {
            assert_eq!(result[part]["state"], "rehearsal", "{result:#}");
        }
        for audit in ["TEST01", "TEST04"] {
            // Whether performance passes depends on the machine.
            let state = result["audits"][audit]["state"].as_str().expect("a state");
            assert!(["rehearsal", "failed"].contains(&state), "{result:#}");
        }
    }
    let campaigns = lab.json(&["campaign", "list"]);
    assert_eq!(campaigns["campaigns"].as_array().expect("a list").len(), 1);

    // Nothing is measured twice: the failed parts are audits, and a different command repeats those.
    let again = regatta(&lab, &SUBMISSION);
    assert!(matches!(again.status.code(), Some(0 | 1)), "{}", printed(&again));
    let campaigns = lab.json(&["campaign", "list"]);
    assert_eq!(campaigns["campaigns"].as_array().expect("a list").len(), 1);

    let tree = lab.workspace().join("rehearsal");
    let staged = regatta(
        &lab,
        &[
            "submission",
            "stage",
            "--rehearsal",
            "--output",
            tree.to_str().expect("a path"),
        ],
    );
    assert!(staged.status.success(), "{}", printed(&staged));
}

/// The plug-ins are empty files: a device reports their names, and none is opened before a run starts.
#[test]
fn a_submission_uses_the_newest_loadgen_that_its_round_accepts() {
    let Some(mut lab) = Lab::new(Broker::Embedded) else {
        return;
    };
    let plugins = lab.device_directory().join("plugins");
    fs::create_dir_all(&plugins).expect("a directory");
    // A published package, two commits of v6.1, and one of v5.1.
    for revision in ["6.0.17-NA", "b066279436", "b66003e10e", "6ad8e26f92"] {
        let name = format!("libregatta_loadgen-{revision}.so");
        fs::write(plugins.join(name), "").expect("a file");
    }
    lab.start_coordinator();
    let plugins = format!("REGATTA_PLUGINS={}", plugins.display());
    lab.device_prefix = vec!["env".to_owned(), plugins];
    lab.start_device();
    lab.wait_for_device();

    let requested = |options: &[&str]| {
        let words = [
            "run",
            "--benchmark",
            "digits",
            "--scenario",
            "Offline",
            "--dry-run",
        ];
        let plan = document(&lab, &[&words, options].concat());
        plan["specs"][0]["loadgen"]["official"]["revision"].clone()
    };
    assert_eq!(requested(&["--loadgen", "official"]), "b66003e10e");
    assert_eq!(
        requested(&["--loadgen", "official", "--round", "v5.1"]),
        "6ad8e26f92"
    );
    assert_eq!(
        requested(&["--loadgen", "official", "--round", "v6.0"]),
        Value::Null
    );
    assert_eq!(requested(&["--loadgen", "official:6.0.17-NA"]), "6.0.17-NA");

    let submission = |round| {
        let words = ["run", "--benchmark", "resnet50", "--submission", "--local-files"];
        [&words[..], &["--engine", "null", "--no-wait", "--round", round]].concat()
    };
    refused(
        &lab,
        &submission("v6.0"),
        "round v6.0 accepts none of these revisions",
    );
    let started = regatta(&lab, &submission("v6.1"));
    assert!(started.status.success(), "{}", printed(&started));
    let loadgen = regatta_tests::eventually("the first run", 60, || {
        let runs = lab.json(&["runs", "list"]);
        runs["runs"][0]["loadgen"].as_str().map(str::to_owned)
    });
    assert_eq!(loadgen, "official:b66003e10e");
}

/// A killed coordinator continues the submission, and the command that watched it can be repeated.
#[test]
fn a_submission_survives_the_coordinator_and_its_command() {
    let Some(mut lab) = Lab::new(Broker::Embedded) else {
        return;
    };
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();
    let started = regatta(
        &lab,
        &[&SUBMISSION[..], &["--scenario", "Offline", "--no-wait"]].concat(),
    );
    assert!(started.status.success(), "{}", printed(&started));
    lab.coordinator.as_mut().expect("it runs").kill();
    lab.start_coordinator();
    regatta_tests::eventually("the campaign to end", 120, || {
        let campaigns = lab.json(&["campaign", "list"]);
        (campaigns["campaigns"][0]["state"] == "ended").then_some(())
    });
    let status = document(&lab, &["submission", "status"]);
    let offline = results(&status)
        .iter()
        .find(|result| result["scenario"] == "Offline");
    let offline = offline.unwrap_or_else(|| panic!("{status:#}"));
    assert_eq!(offline["performance"]["state"], "rehearsal", "{status:#}");
    let other = results(&status)
        .iter()
        .find(|result| result["scenario"] == "MultiStream");
    let other = other.unwrap_or_else(|| panic!("{status:#}"));
    assert_eq!(other["performance"]["state"], "missing", "{status:#}");
    assert!(
        other["next"]
            .as_str()
            .expect("a command")
            .contains("--submission"),
        "{status:#}"
    );
}
