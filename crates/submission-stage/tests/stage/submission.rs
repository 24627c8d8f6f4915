//! Tests of the trees of runs that may be submitted.

use std::{fs, path::Path};

use regatta_submission_check::{
    check::{self, Verdict},
    tree::Tree,
};
use regatta_submission_stage::{
    DraftError,
    stage::{Kind, StageError},
    truncate::{self, Destination},
};
use regatta_test_support::{
    staging::{MLPERF_CONF, StagingFixture, id},
    tree::{files, names},
};
use regatta_types::{Division, Mode};

fn cut(fixture: &StagingFixture, submitter: &str) {
    let report = truncate::truncate(&truncate::TruncationRequest {
        input: &fixture.at("tree"),
        submitter,
        destination: Destination::Backup(fixture.at("originals")),
        skip_scenarios: &[],
        rule: fixture.round.truncation.as_ref().unwrap(),
    });
    let report = report.unwrap();
    assert_eq!(report.problems().count(), 0, "{report:?}");
}

fn accepted(fixture: &StagingFixture) {
    let tree = Tree::scan(&fixture.at("tree")).unwrap();
    let strict = check::strict(&tree, &fixture.round);
    assert!(strict.passes(), "{:#?}", strict.findings);
    assert_eq!(strict.results.len(), 1);
    let official = check::as_official(&tree, &fixture.round, None).unwrap();
    assert_eq!(official.verdict, Verdict::Accept);
}

#[test]
fn a_staged_submission_is_accepted_in_either_layout() {
    for round in ["v5.1", "v6.0", "v6.1"] {
        let fixture = StagingFixture::new(round);
        let answers = fixture.answers(|text| text);
        let runs = fixture.all_runs();
        let staged = fixture
            .stage(Division::Closed, Kind::Submission, &answers, &runs)
            .unwrap();
        assert_eq!(staged.submitter, "ACME");
        let [result] = staged.results.as_slice() else {
            panic!("{staged:?}")
        };
        assert_eq!(result.performance.to_string(), id(1));
        assert_eq!(result.accuracy.to_string(), id(2));
        assert_eq!(result.audits["TEST01"].to_string(), id(3));
        assert_eq!(files(&fixture.at("tree")).len(), staged.files);
        assert!(
            staged.notes.iter().any(|note| note.contains("1 hidden entries")),
            "{:?}",
            staged.notes
        );
        cut(&fixture, "ACME");
        accepted(&fixture);
        assert_eq!(fixture.left_behind(), ["originals", "tree"], "{round}");
    }
}

#[test]
fn a_preview_names_a_run_whose_files_are_gone_and_shows_the_others() {
    let fixture = StagingFixture::new("v6.1");
    let (answers, mut runs) = (fixture.answers(|text| text), fixture.all_runs());
    let whole = fixture.preview(&answers, &runs).unwrap();
    assert_eq!((whole.results.len(), whole.findings.len()), (1, 0));
    let gone = fixture.accuracy_run(90);
    fs::remove_dir_all(&gone).unwrap();
    runs.push(gone);
    let preview = fixture.preview(&answers, &runs).unwrap();
    assert_eq!(preview.results.len(), 1);
    let [finding] = preview.findings.as_slice() else {
        panic!("{:?}", preview.findings)
    };
    assert!(
        finding
            .to_string()
            .ends_with("restore its directory, or repeat the run"),
        "{finding}"
    );
    assert!(finding.place.starts_with("run "), "{finding}");
}

#[test]
fn the_classic_layout_has_its_files() {
    let fixture = StagingFixture::new("v5.1");
    let (answers, runs) = (fixture.answers(|text| text), fixture.all_runs());
    fixture
        .stage(Division::Closed, Kind::Submission, &answers, &runs)
        .unwrap();
    insta::assert_snapshot!(names(&fixture.at("tree")));
}

#[test]
fn the_results_only_layout_has_its_files() {
    let fixture = StagingFixture::new("v6.1");
    let (answers, runs) = (fixture.answers(|text| text), fixture.all_runs());
    fixture
        .stage(Division::Closed, Kind::Submission, &answers, &runs)
        .unwrap();
    insta::assert_snapshot!(names(&fixture.at("tree")));
    let read = |path: &str| fs::read_to_string(fixture.at("tree/closed/ACME").join(path)).unwrap();
    insta::assert_snapshot!("system", read("systems/Orin.json"));
    let result = "results/Orin/whisper/Offline";
    insta::assert_snapshot!("readme", read(&format!("{result}/README.md")));
    // LoadGen's own conf, found by its hash, is not the one rendered for the run.
    assert_eq!(read(&format!("{result}/mlperf.conf")), MLPERF_CONF);
    assert_eq!(
        read(&format!("{result}/user.conf")),
        "whisper.Offline.target_qps = 90\n"
    );
    assert_eq!(
        read(&format!("{result}/accuracy/accuracy.txt")),
        "Word Error Rate: 2.0671%, accuracy=97.9329%\n"
    );
}

#[test]
fn the_same_runs_give_the_same_bytes() {
    let fixture = StagingFixture::new("v6.1");
    let (answers, mut runs) = (fixture.answers(|text| text), fixture.all_runs());
    let stage = |output: &str, runs: &[std::path::PathBuf]| {
        fixture.stage_to(output, Division::Closed, Kind::Submission, &answers, runs)
    };
    stage("tree", &runs).unwrap();
    runs.reverse();
    stage("again", &runs).unwrap();
    assert!(files(&fixture.at("tree")) == files(&fixture.at("again")));
    // Existing files are not changed.
    let error = stage("tree", &runs).unwrap_err();
    assert!(
        matches!(error, StageError::Draft(DraftError::Exists { .. })),
        "{error}"
    );
    // The files of a killed call are removed, and never taken for a tree.
    fs::remove_dir_all(fixture.at("again")).unwrap();
    fixture.put(".again.regatta-part/closed/ACME/half", "half");
    stage("again", &runs).unwrap();
    assert!(files(&fixture.at("tree")) == files(&fixture.at("again")));
    assert_eq!(fixture.left_behind(), ["again", "tree"]);
}

#[test]
fn two_stagings_of_one_tree_do_not_mix() {
    let fixture = StagingFixture::new("v6.1");
    let (answers, runs) = (fixture.answers(|text| text), fixture.all_runs());
    let stage = |output: &str| fixture.stage_to(output, Division::Closed, Kind::Submission, &answers, &runs);
    stage("alone").unwrap();
    let stagings = std::thread::scope(|scope| {
        let stagings = [0, 1, 2].map(|_| scope.spawn(|| stage("tree")));
        stagings.map(|staging| staging.join().unwrap())
    });
    assert_eq!(stagings.iter().filter(|staging| staging.is_ok()).count(), 1);
    for error in stagings.iter().filter_map(|staging| staging.as_ref().err()) {
        let refused = matches!(
            error,
            StageError::Draft(DraftError::Busy { .. } | DraftError::Exists { .. })
        );
        assert!(refused, "{error}");
    }
    assert!(files(&fixture.at("tree")) == files(&fixture.at("alone")));
    assert_eq!(fixture.left_behind(), ["alone", "tree"]);
}

#[test]
fn the_newest_run_that_is_in_order_is_taken() {
    let fixture = StagingFixture::new("v6.1");
    let answers = fixture.answers(|text| text);
    let mut runs = fixture.all_runs();
    runs.push(fixture.run(8, Mode::PerformanceOnly, |parts| {
        parts.evidence["attempts"][0]["valid"] = false.into();
    }));
    runs.push(fixture.accuracy_run(9));
    let staged = fixture
        .stage(Division::Closed, Kind::Submission, &answers, &runs)
        .unwrap();
    assert_eq!(staged.results[0].performance.to_string(), id(1));
    assert_eq!(staged.results[0].accuracy.to_string(), id(9));
}

#[test]
fn the_open_division_maps_its_own_models() {
    let fixture = StagingFixture::new("v6.1");
    let answers = fixture.answers(|text| {
        let text = text.replace("benchmark.whisper", "benchmark.murmur");
        format!("{text}[model_mapping]\nmurmur = \"whisper\"\n")
    });
    let own = |number, mode| {
        fixture.run(number, mode, |parts| {
            parts.spec.benchmark.name = "murmur".to_owned()
        })
    };
    let runs = [own(1, Mode::PerformanceOnly), own(2, Mode::AccuracyOnly)];
    let log = runs[1].join("files/mlperf_log_accuracy.json");
    fixture.put("desk/reference.py", "print()\n");
    regatta_submission_stage::stage::official::keep(
        &runs[1].join("accuracy"),
        &fixture.at("desk/reference.py"),
        &log,
        b"Word Error Rate: 50%, accuracy=50%\n",
    )
    .unwrap();
    fixture
        .stage(Division::Open, Kind::Submission, &answers, &runs)
        .unwrap();
    let mapping = fs::read_to_string(fixture.at("tree/open/ACME/model_mapping.json")).unwrap();
    assert_eq!(mapping, "{\n  \"murmur\": \"whisper\"\n}\n");
    cut(&fixture, "ACME");
    accepted(&fixture);
}

#[test]
fn the_devices_doctor_drafts_the_description_and_the_operator_overrules_it() {
    let fixture = StagingFixture::new("v6.1");
    let answers = fixture.answers(|text| {
        let text = text.replace("devices = [", "doctor = \"boat-1.json\"\ndevices = [");
        let text = text.replace("host_processor_model_name = \"Cortex-A78AE\"\n", "");
        text.replace("host_storage_type = \"eMMC\"\n", "")
    });
    let runs = fixture.all_runs();
    let staged = || fixture.stage(Division::Closed, Kind::Submission, &answers, &runs);
    let Err(StageError::Refused { findings }) = staged() else {
        panic!("there is no word of the doctor's yet")
    };
    assert!(
        findings[0].place == "answers: system Orin: doctor",
        "{findings:#?}"
    );

    let description = serde_json::json!({
        "host_processor_model_name": "ARMv8", "host_storage_type": "NVMe", "host_memory_capacity": "64 GB",
        "accelerators_per_node": 7, "cooling": "",
    });
    let reported = serde_json::json!({ "schema": 1, "system_description": description });
    fixture.put("desk/boat-1.json", &reported.to_string());
    staged().unwrap();
    let system = fs::read_to_string(fixture.at("tree/closed/ACME/systems/Orin.json")).unwrap();
    let system: serde_json::Value = serde_json::from_str(&system).unwrap();
    assert_eq!(system["host_processor_model_name"], "ARMv8");
    assert_eq!(
        system["host_memory_capacity"], "64 GB",
        "the doctor knows more than a run does"
    );
    assert_eq!(
        (&system["accelerators_per_node"], &system["cooling"]),
        (&1.into(), &"air".into())
    );
}

#[test]
fn unknown_description_fields_are_noted() {
    let fixture = StagingFixture::new("v6.1");
    let answers = fixture.answers(|text| text.replace("cooling =", "coolness = \"much\"\ncooling ="));
    let staged = fixture
        .stage(Division::Closed, Kind::Submission, &answers, &fixture.all_runs())
        .unwrap();
    let reported = |note: &&String| note.contains("system Orin: v6.1 has no field coolness");
    assert!(
        staged.notes.iter().any(|note| reported(&note)),
        "{:?}",
        staged.notes
    );
}

#[test]
fn an_older_layout_has_a_place_for_the_checkers_log() {
    let fixture = StagingFixture::new("v4.0");
    let answers = fixture.answers(|text| {
        let text = text.replace("[documents]", "[documents]\nchecker_log = \"log.txt\"");
        format!("{text}[model_mapping]\nwhisper = \"resnet\"\n")
    });
    fixture.put("desk/log.txt", "SUMMARY: submission looks OK\n");
    let runs = fixture.all_runs();
    fixture
        .stage(Division::Open, Kind::Submission, &answers, &runs[..2])
        .unwrap();
    let log = "tree/open/ACME/results/compliance_checker_log.txt";
    assert!(Path::new(&fixture.at(log)).is_file());
    // Required until v4.1, and present in every layout.
    let conf = "tree/open/ACME/measurements/Orin/whisper/Offline/mlperf.conf";
    assert_eq!(fs::read_to_string(fixture.at(conf)).unwrap(), MLPERF_CONF);
}
