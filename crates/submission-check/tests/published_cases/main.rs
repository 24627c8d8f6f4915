//! Tests of earlier errors of the strict check about published trees. Each case is a synthetic tree, beside a wrong one.
//! `corpus.rs` and `forger` judge the published trees themselves.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may say what it expects")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use regatta_catalogue::{known, round::Round};
use regatta_submission_check::{
    check::{Finding, Severity, strict},
    tree::Tree,
};
use regatta_test_support::{edit, synthetic_submission};
use tempfile::TempDir;

const DETAIL: &str = "mlperf_log_detail.txt";

/// A made-up submission of one benchmark on an edge system.
struct Submission {
    round: &'static Round,
    benchmark: &'static str,
    division: &'static str,
    root: TempDir,
}

impl Submission {
    fn new(round: &str, benchmark: &'static str) -> Self {
        let round = known::round(round).unwrap().unwrap();
        let root = tempfile::tempdir().unwrap();
        synthetic_submission::category(root.path(), round, benchmark, "edge");
        Self {
            round,
            benchmark,
            division: "closed",
            root,
        }
    }

    /// Writes one in the open division.
    fn open(round: &str, benchmark: &'static str) -> Self {
        let closed = Self::new(round, benchmark);
        let root = closed.root.path();
        fs::rename(root.join("closed"), root.join("open")).unwrap();
        edit::json_text(&root.join("open/Team/systems/board.json"), "division", "open");
        Self {
            division: "open",
            ..closed
        }
    }

    fn home(&self) -> PathBuf {
        self.root.path().join(self.division).join("Team")
    }

    /// A path below one of the submitter's directories, such as `results`.
    fn path(&self, part: &str, below: &str) -> PathBuf {
        self.home()
            .join(part)
            .join("board")
            .join(self.benchmark)
            .join(below)
    }

    fn results(&self, below: &str) -> PathBuf {
        self.path("results", below)
    }

    fn by(&self, rule: &str) -> Vec<Finding> {
        let findings = strict(&Tree::scan(self.root.path()).unwrap(), self.round).findings;
        let of_rule = |finding: &Finding| finding.rule.split(": ").next() == Some(rule);
        findings.into_iter().filter(of_rule).collect()
    }

    /// The only finding by a rule: its severity and message.
    fn only(&self, rule: &str) -> (Severity, String) {
        match self.by(rule).as_slice() {
            [one] => (one.severity, one.message.clone()),
            others => panic!("{others:#?}"),
        }
    }
}

fn number(log: &Path, key: &str) -> f64 {
    let text = fs::read_to_string(log).unwrap();
    let start = format!("\"key\": \"{key}\", \"value\": ");
    let (_, rest) = text.split_once(&start).unwrap();
    rest.split(',').next().unwrap().parse().unwrap()
}

/// Writes a log as LoadGens up to v4.1 do: without the setting, and with the requested samples.
fn as_before_v5(log: &Path) {
    let requested = number(log, "effective_samples_per_query").to_string();
    edit::log_value(log, "generated_samples_per_query", &requested);
    edit::lines(log, |line| {
        (!line.contains("sample_concatenate_permutation")).then(|| line.to_owned())
    });
}

#[test]
fn logs_before_v5_state_the_requested_samples_and_not_the_setting() {
    let tree = Submission::new("v4.1", "3d-unet-99");
    let log = tree.results("Offline/performance/run_1").join(DETAIL);
    let [issued, requested] =
        ["generated_samples_per_query", "effective_samples_per_query"].map(|key| number(&log, key));
    assert!(
        issued > requested,
        "{issued} samples fill up whole sets, {requested} do not"
    );
    as_before_v5(&log);
    for rule in ["figures", "settings", "equal-issue"] {
        assert_eq!(tree.by(rule), [], "{rule}");
    }
    // A rate of the requested samples, which were all issued.
    let rate = requested / (number(&log, "result_max_latency_ns") / 1e9);
    edit::log_value(&log, "result_samples_per_second", &rate.to_string());
    let (severity, message) = tree.only("equal-issue");
    assert_eq!(severity, Severity::Error);
    assert!(message.contains("not complete sets of samples"), "{message}");
}

#[test]
fn filled_up_sets_of_multi_stream_answer_samples_twice() {
    let tree = Submission::new("v3.0", "retinanet");
    let text = |repeated: u32| {
        format!(
            "Verifying accuracy. This might take a while...\nnum_acc_log_entries = 24984\nnum_acc_log_duplicate_keys = {repeated}\n\
             num_acc_log_data_mismatch = 0\nnum_perf_log_entries = 2400\nnum_perf_log_qsl_idx_match = 2400\n\
             num_perf_log_data_mismatch = 0\nnum_missing_qsl_idxs = 0\nTEST PASS\n"
        )
    };
    let path = tree.path("compliance", "MultiStream/TEST01");
    let logged = fs::read_to_string(path.join("verify_accuracy.txt")).unwrap();
    let logged = logged.lines().next().unwrap().split(" = ").nth(1).unwrap();
    let write = |repeated| {
        let text = text(repeated).replace("2400", logged);
        fs::write(path.join("verify_accuracy.txt"), text).unwrap();
    };
    write(203);
    assert_eq!(tree.by("test-accuracy"), []);
    write(202);
    let (_, message) = tree.only("test-accuracy");
    assert!(
        message.contains("of 24782 samples; the data set has 24781"),
        "{message}"
    );
}

#[test]
fn the_open_division_may_take_another_data_set() {
    let tree = Submission::open("v5.1", "retinanet");
    let log = tree.results("Offline/accuracy").join(DETAIL);
    edit::log_value(&log, "qsl_reported_total_count", "5000");
    let severities: Vec<_> = tree
        .by("dataset")
        .into_iter()
        .map(|finding| finding.severity)
        .collect();
    assert_eq!(severities, [Severity::Note]);
}

#[test]
fn a_test_may_have_the_larger_library_and_not_the_smaller() {
    let tree = Submission::new("v5.1", "resnet");
    let log = tree
        .path("compliance", "Offline/TEST01/performance/run_1")
        .join(DETAIL);
    let of_library = || {
        let found = tree.by("agreement").into_iter();
        let found = found.filter(|finding| finding.message.starts_with("qsl_reported_total_count"));
        found.map(|finding| finding.severity).collect::<Vec<_>>()
    };
    let library = number(&log, "qsl_reported_total_count");
    edit::log_value(&log, "qsl_reported_total_count", &(library * 2.0).to_string());
    assert_eq!(of_library(), [Severity::Warning]);
    edit::log_value(&log, "qsl_reported_total_count", &(library / 2.0).to_string());
    assert_eq!(of_library(), [Severity::Error]);
}

#[test]
fn calibration_may_be_described_beside_each_result() {
    let tree = Submission::new("v6.0", "resnet");
    fs::remove_file(tree.home().join("calibration.md")).unwrap();
    let (severity, message) = tree.only("calibration");
    assert_eq!(severity, Severity::Warning);
    assert!(message.contains("3 of 3 results"), "{message}");
    for scenario in ["SingleStream", "MultiStream", "Offline"] {
        fs::write(
            tree.results(scenario).join("calibration_process.adoc"),
            "Of 500 pictures.\n",
        )
        .unwrap();
    }
    assert_eq!(tree.by("calibration"), []);
}

#[test]
fn a_file_too_many_counts_where_the_official_checker_compares() {
    for (round, severity) in [("v5.1", Severity::Error), ("v6.0", Severity::Warning)] {
        let tree = Submission::new(round, "resnet");
        fs::write(tree.results("Offline/accuracy/notes.txt"), "Mine.\n").unwrap();
        assert_eq!(tree.only("file-set").0, severity, "{round}");
    }
}

#[test]
fn a_record_marked_as_an_error_is_reported_with_its_text() {
    let tree = Submission::new("v6.0", "resnet");
    let log = tree.results("Offline/performance/run_1").join(DETAIL);
    edit::lines(&log, |line| match line.contains("\"key\": \"sut_name\"") {
        true => Some(line.replace("\"is_error\": false", "\"is_error\": true")),
        false => Some(line.to_owned()),
    });
    let messages: Vec<_> = tree
        .by("loadgen-errors")
        .into_iter()
        .map(|finding| finding.message)
        .collect();
    let reported = messages
        .iter()
        .any(|message| message.contains("LoadGen never does with this record: sut_name: board"));
    assert!(reported, "{messages:#?}");
}

#[test]
fn an_accuracy_is_of_as_many_samples_as_its_run_in_open_too() {
    let tree = Submission::open("v5.1", "resnet");
    assert_eq!(tree.by("dataset"), []);
    let path = tree.results("Offline/accuracy/accuracy.txt");
    edit::lines(&path, |line| match line.starts_with("accuracy=") {
        true => Some("accuracy=76.195%, good=733, total=962".to_owned()),
        false => Some(line.to_owned()),
    });
    let (severity, message) = tree.only("dataset");
    assert_eq!(severity, Severity::Error);
    assert!(
        message.contains("of 962 samples, the data set has 50000"),
        "{message}"
    );
}

#[test]
fn no_more_samples_are_loaded_than_the_library_has() {
    let tree = Submission::open("v4.1", "resnet");
    assert_eq!(tree.by("performance-samples"), []);
    edit::log_value(
        &tree.results("Offline/performance/run_1").join(DETAIL),
        "qsl_reported_total_count",
        "20",
    );
    let (severity, message) = tree.only("performance-samples");
    assert_eq!(severity, Severity::Error);
    assert!(message.contains("20"), "{message}");
}
