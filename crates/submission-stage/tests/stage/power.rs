//! Tests of power sessions beside results. The session is a published one, whose log replaces the run's.

use std::fs;

use regatta_submission_check::{check::power, tree::Tree};
use regatta_submission_stage::stage::{Kind, StageError, Staged};
use regatta_test_support::{published_results, staging::StagingFixture, tree::copy};
use regatta_types::{Division, Mode};

const PUBLISHED: &str = "v2.1/closed/NVIDIA/results/Orin_TRT_MaxQ/resnet50/Offline/performance";

/// Stages a run that was measured in this session, in an open submission of its round.
fn staged(change: impl FnOnce(&StagingFixture)) -> Option<(StagingFixture, Result<Staged, StageError>)> {
    let session = published_results(PUBLISHED)?;
    let fixture = StagingFixture::new("v2.1");
    copy(&session, &fixture.at("desk/power/session"));
    let logs = ["mlperf_log_detail.txt", "mlperf_log_summary.txt"].map(|name| {
        (
            name,
            fs::read_to_string(session.join("run_1").join(name)).unwrap(),
        )
    });
    change(&fixture);
    let runs = [(1, Mode::PerformanceOnly), (2, Mode::AccuracyOnly)].map(|(number, mode)| {
        fixture.run(number, mode, |parts| {
            parts.spec.benchmark.name = "resnet50".to_owned();
            if mode == Mode::PerformanceOnly {
                parts.files.extend(logs.clone());
            }
        })
    });
    let output = b"accuracy=76.034%, good=38017, total=50000\n";
    fixture.put("desk/reference.py", "print()\n");
    regatta_submission_stage::stage::official::keep(
        &runs[1].join("accuracy"),
        &fixture.at("desk/reference.py"),
        &runs[1].join("files/mlperf_log_accuracy.json"),
        output,
    )
    .unwrap();
    let answers = fixture.answers(|text| text.replace("whisper", "resnet50"));
    let outcome = fixture.stage(Division::Open, Kind::Submission, &answers, &runs);
    Some((fixture, outcome))
}

fn refused(outcome: Result<Staged, StageError>, what: &str) {
    match outcome {
        Err(StageError::Refused { findings }) => {
            let found = findings
                .iter()
                .any(|finding| finding.place.contains("power session") && finding.what.contains(what));
            assert!(found, "{findings:#?}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_session_is_staged_with_its_run() {
    let Some((fixture, outcome)) = staged(|_| {}) else {
        return;
    };
    let staged = outcome.unwrap();
    let performance = format!("{}/performance", staged.results[0].directory);
    let tree = Tree::scan(&fixture.at("tree")).unwrap();
    let rules = fixture.round.power.as_ref().unwrap();
    assert!(power::check(&tree, &performance, rules).passes());
    assert_eq!(tree.files(&format!("{performance}/power")).unwrap().len(), 5);
    assert_eq!(tree.files(&format!("{performance}/ranging")).unwrap().len(), 3);
    assert!(tree.is_file(&format!("{performance}/run_1/spl.txt")));
}

#[test]
fn a_session_of_another_run_is_refused() {
    let other =
        |fixture: &StagingFixture| fixture.put("desk/power/session/run_1/mlperf_log_detail.txt", "another\n");
    let Some((_, outcome)) = staged(other) else { return };
    refused(outcome, "of no performance run");
}

#[test]
fn a_session_that_the_power_checker_rejects_is_refused() {
    let no_messages = |fixture: &StagingFixture| fixture.put("desk/power/session/power/server.json", "{}");
    let Some((_, outcome)) = staged(no_messages) else {
        return;
    };
    refused(outcome, "");
    let no_ranging =
        |fixture: &StagingFixture| fs::remove_file(fixture.at("desk/power/session/ranging/spl.txt")).unwrap();
    let Some((_, outcome)) = staged(no_ranging) else {
        return;
    };
    refused(outcome, "ranging/spl.txt is missing");
}

#[test]
fn a_simulated_session_is_refused() {
    let simulated = |fixture: &StagingFixture| {
        let path = fixture.at("desk/power/session/power/server.json");
        let text = fs::read_to_string(&path).unwrap();
        let marked = text.replacen('{', "{\"note\": \"FAKEPTD\",", 1);
        fs::write(path, marked).unwrap();
    };
    let Some((_, outcome)) = staged(simulated) else {
        return;
    };
    refused(outcome, "its PTDaemon is a simulation");
}

#[test]
fn a_session_of_regattas_own_programs_is_refused() {
    let own = |fixture: &StagingFixture| {
        let path = fixture.at("desk/power/session/power/client.json");
        let text = fs::read_to_string(&path).unwrap();
        let mut description: serde_json::Value = serde_json::from_str(&text).unwrap();
        description["sources"] = serde_json::json!({ "regatta-power-client 0.1.0": "aa" });
        fs::write(&path, description.to_string()).unwrap();
    };
    let Some((_, outcome)) = staged(own) else {
        return;
    };
    let error = outcome.unwrap_err().to_string();
    assert!(
        error.contains("can never be staged") && error.contains("not valid for submission"),
        "{error}"
    );
}
