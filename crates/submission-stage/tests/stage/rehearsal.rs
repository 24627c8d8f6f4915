//! Tests of rehearsals: runs that are not measurements, in a tree that says so.

use std::{fs, path::PathBuf};

use regatta_catalogue::known;
use regatta_submission_check::{check, tree::Tree};
use regatta_submission_stage::stage::{Answers, Kind};
use regatta_test_support::{
    staging::{Parts, StagingFixture},
    tree::names,
};
use regatta_types::{
    Division, Mode,
    documents::{ControlProof, EngineKind, LoadgenChoice, RunLength, StateProof, StateSpec},
};
use serde_json::Value;

/// Changes a run into the quickstart's: our LoadGen, the bundled benchmark, one second.
pub(crate) fn of_the_quickstart(parts: &mut Parts) {
    parts.spec.benchmark = known::benchmarks().unwrap().remove(0);
    parts.spec.loadgen = LoadgenChoice::Native;
    parts.spec.engine.kind = EngineKind::Tract;
    parts.spec.length = RunLength::Duration(1000);
    let loadgen = &mut parts.evidence["attempts"][0]["loadgen"];
    loadgen["implementation"] = "regatta-loadgen".into();
    loadgen["mlperf_conf_sha256"] = regatta_test_support::staging::hash(&parts.files["mlperf.conf"]).into();
    parts.evidence["not_a_measurement"] = vec!["run by Regatta's own LoadGen"].into();
    if parts.spec.mode == Mode::AccuracyOnly {
        parts.record["accuracy"] = serde_json::json!({
            "metric": "top1", "value": 98.995, "correct": 591, "total": 597, "target": 98.0,
        });
    }
}

/// The runs of a rehearsal.
pub(crate) fn runs(fixture: &StagingFixture) -> [PathBuf; 2] {
    [
        fixture.run(1, Mode::PerformanceOnly, of_the_quickstart),
        fixture.run(2, Mode::AccuracyOnly, of_the_quickstart),
    ]
}

/// Changes a run into the quickstart's on a board in MaxQ, as its evidence proves.
fn in_maxq(parts: &mut Parts) {
    of_the_quickstart(parts);
    let state = StateSpec {
        name: "MaxQ".to_owned(),
        source: "a test".to_owned(),
        controls: [("gpu".to_owned(), "lock:624750000".to_owned())].into(),
    };
    let proof = StateProof {
        requested: Some(state.clone()),
        set: vec![ControlProof {
            control: "gpu-max".to_owned(),
            before: None,
            requested: "624750000".to_owned(),
            read: Some("624750000".to_owned()),
        }],
        ..StateProof::default()
    };
    parts.evidence["state"] = serde_json::to_value(proof).unwrap();
    parts.spec.state = Some(state);
}

#[test]
fn a_board_in_two_states_is_two_systems() {
    let fixture = StagingFixture::new("v5.1");
    let mut runs = runs(&fixture).to_vec();
    runs.push(fixture.run(11, Mode::PerformanceOnly, in_maxq));
    runs.push(fixture.run(12, Mode::AccuracyOnly, in_maxq));
    let own = |text: &str| Answers::from_toml(text, &fixture.at("desk")).unwrap();
    let both = "[[system]]\nname = \"Orin_MaxQ\"\ndevices = [\"boat-1\"]\nstate = \"maxq\"\n\
                [[system]]\nname = \"Orin\"\ndevices = [\"boat-1\"]\n";
    for (answers, systems) in [
        (Answers::default(), ["REHEARSAL-boat-1", "REHEARSAL-boat-1_MaxQ"]),
        (own(both), ["REHEARSAL-Orin", "REHEARSAL-Orin_MaxQ"]),
    ] {
        let staged = fixture
            .stage(Division::Open, Kind::Rehearsal, &answers, &runs)
            .unwrap();
        let found: Vec<&str> = staged
            .results
            .iter()
            .map(|result| result.system.as_str())
            .collect();
        assert_eq!(found, systems);
        fs::remove_dir_all(fixture.at("tree")).unwrap();
    }
    // A system in one state does not get the runs of another.
    let only = own("[[system]]\nname = \"Orin_MaxQ\"\ndevices = [\"boat-1\"]\nstate = \"MaxQ\"\n");
    let refused = fixture.stage(Division::Open, Kind::Rehearsal, &only, &runs);
    let words = format!("{:?}", refused.unwrap_err());
    assert!(
        words.contains("its device boat-1 belongs to no system"),
        "{words}"
    );
}

#[test]
fn a_rehearsal_needs_no_answers_and_says_what_it_is_in_every_place() {
    for round in ["v5.1", "v6.1"] {
        let fixture = StagingFixture::new(round);
        let runs = runs(&fixture);
        let answers = Answers::default();
        let staged = fixture
            .stage(Division::Open, Kind::Rehearsal, &answers, &runs)
            .unwrap();
        assert_eq!(staged.submitter, "REHEARSAL-nobody");
        let [result] = staged.results.as_slice() else {
            panic!("{staged:?}")
        };
        assert_eq!(
            (result.system.as_str(), result.model.as_str()),
            ("REHEARSAL-boat-1", "digits")
        );
        let read = |path: &str| fs::read_to_string(fixture.at("tree").join(path)).unwrap();
        insta::assert_snapshot!(format!("rehearsal_{round}"), names(&fixture.at("tree")));
        assert!(read("REHEARSAL.md").contains("must not be submitted"));
        assert!(read("REHEARSAL.md").contains("own LoadGen"));
        let home = "open/REHEARSAL-nobody";
        let system: Value =
            serde_json::from_str(&read(&format!("{home}/systems/REHEARSAL-boat-1.json"))).unwrap();
        assert_eq!(system["system_name"], "REHEARSAL: Jetson AGX Orin");
        assert_eq!(system["cooling"], "not stated (rehearsal)");
        assert!(
            system["hw_notes"]
                .as_str()
                .unwrap()
                .starts_with("REHEARSAL, not a result")
        );
        let text = read(&format!("{}/accuracy/accuracy.txt", result.directory));
        assert_eq!(
            text,
            "REHEARSAL: computed by Regatta, not the reference script's output\n\
             accuracy=98.995%, good=591, total=597\n"
        );
        assert_eq!(
            read(&format!("{home}/model_mapping.json")),
            "{\n  \"digits\": \"resnet\"\n}\n"
        );
        // Only rules about the measurement fail, none about the tree.
        let report = check::strict(&Tree::scan(&fixture.at("tree")).unwrap(), &fixture.round);
        for rule in [
            "layout",
            "system",
            "measurements",
            "code",
            "names",
            "benchmark",
            "scenarios",
            "calibration",
        ] {
            let of_rule = report
                .findings
                .iter()
                .find(|finding| finding.rule.starts_with(&format!("{rule}:")));
            assert!(of_rule.is_none(), "{of_rule:?}");
        }
    }
}

#[test]
fn a_rehearsal_shows_runs_that_failed_as_notes() {
    let fixture = StagingFixture::new("v6.1");
    let runs = [
        fixture.run(1, Mode::PerformanceOnly, |parts| {
            of_the_quickstart(parts);
            parts.evidence["attempts"][0]["valid"] = false.into();
            parts.spec.round = "v6.0".to_owned();
        }),
        fixture.run(2, Mode::AccuracyOnly, of_the_quickstart),
    ];
    let answers = fixture.answers(|text| text);
    let staged = fixture
        .stage(Division::Open, Kind::Rehearsal, &answers, &runs)
        .unwrap();
    assert_eq!(staged.submitter, "REHEARSAL-ACME");
    let notes = staged.notes.join("\n");
    assert!(
        notes.contains("INVALID") && notes.contains("by the rules of v6.0"),
        "{notes}"
    );
}
