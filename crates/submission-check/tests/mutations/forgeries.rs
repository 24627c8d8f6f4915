//! Tests of forged submissions: published trees, changed so that the official checker still accepts them, or so that the change
//! is inconspicuous. The strict check names file, line, rule and fix. `main.rs` has the corpus' own twenty faults.

use std::{
    fs,
    path::{Path, PathBuf},
};

use regatta_submission_check::{
    check::{Finding, Severity, strict},
    tree::Tree,
};
use regatta_test_support::{edit, published_results, round as named, tree};

use super::{resnet, statements::STATEMENTS};

/// A forgery: its tree, the edit, and where the strict check finds it.
pub(super) struct Forgery {
    pub(super) name: &'static str,
    pub(super) tree: &'static str,
    pub(super) edit: fn(&Path),
    pub(super) rule: &'static str,
    pub(super) severity: Severity,
    /// How the finding's path ends.
    pub(super) file: &'static str,
    /// Words of its message.
    pub(super) says: &'static str,
    /// Whether it names a line.
    pub(super) line: bool,
}

const NEW: &str = "v6.0/closed/HPE";
const POWER: &str = "v2.1/closed/Krai";
pub(super) const DETAIL: &str = "performance/run_1/mlperf_log_detail.txt";
pub(super) const SUMMARY: &str = "performance/run_1/mlperf_log_summary.txt";
const RUN: &str =
    "results/HPE_PROLIANT_DL145_RTX_PRO_4500_PCIE_32GBx1_TRT_TRT/resnet/MultiStream/performance";

/// Returns the directory of another division beside a submitter's.
fn division(home: &Path, name: &str) -> PathBuf {
    home.parent().unwrap().with_file_name(name)
}

fn measured(home: &Path, path: &str) -> PathBuf {
    home.join("results/xavier-power.0-fan.cool-armnn-v22.05-neon/resnet50/singlestream/performance")
        .join(path)
}

pub(super) fn text(path: &Path, from: &str, to: &str) {
    let before = fs::read_to_string(path).unwrap();
    assert!(before.contains(from), "{from} is in {}", path.display());
    fs::write(path, before.replace(from, to)).unwrap();
}

/// Copies the performance run's logs over a test's, with a matching verdict.
fn test_from_result(home: &Path, test: &str) {
    let run = resnet(home, "SingleStream/performance/run_1");
    let forged = resnet(home, &format!("SingleStream/{test}/performance/run_1"));
    for name in ["mlperf_log_detail.txt", "mlperf_log_summary.txt"] {
        fs::copy(run.join(name), forged.join(name)).unwrap();
    }
    let verdict = resnet(home, &format!("SingleStream/{test}/verify_performance.txt"));
    let output = fs::read_to_string(&verdict).unwrap();
    let score = |line: &str, label: &str| {
        let (left, right) = line.split_once(" = ")?;
        left.eq_ignore_ascii_case(label).then(|| right.to_owned())
    };
    let mut lines = output.split_inclusive('\n');
    let reference = lines.find_map(|line| score(line, "reference score"));
    let forged: String = output
        .split_inclusive('\n')
        .map(|line| match score(line, "test score") {
            Some(_) => format!("test score = {}", reference.as_ref().unwrap()),
            None => line.to_owned(),
        })
        .collect();
    fs::write(verdict, forged).unwrap();
}

pub(super) const fn forgery(
    name: &'static str,
    edit: fn(&Path),
    (rule, file): (&'static str, &'static str),
    says: &'static str,
) -> Forgery {
    Forgery {
        name,
        tree: NEW,
        edit,
        rule,
        severity: Severity::Error,
        file,
        says,
        line: true,
    }
}

const FORGERIES: [Forgery; 17] = [
    forgery(
        "a run that was broken off, with VALID written over its verdict",
        |home| {
            let log = resnet(home, &format!("SingleStream/{DETAIL}"));
            edit::log_value(&log, "power_end", "\"01-28-2026 05:21:34.661\"");
        },
        ("min-duration", DETAIL),
        "lasted 120.0 s",
    ),
    forgery(
        "a better latency in the detail log",
        |home| {
            let log = resnet(home, &format!("SingleStream/{DETAIL}"));
            edit::log_value(&log, "early_stopping_latency_ss", "9561798");
        },
        ("figures", DETAIL),
        "result_90.00_percentile_latency_ns is 10561389, early_stopping_latency_ss is 9561798",
    ),
    forgery(
        "a better rate in both of LoadGen's files",
        |home| {
            let log = resnet(home, &format!("Offline/{DETAIL}"));
            edit::log_value(&log, "result_samples_per_second", "19510.7");
            let summary = resnet(home, &format!("Offline/{SUMMARY}"));
            text(
                &summary,
                "Samples per second: 19210.7",
                "Samples per second: 19510.7",
            );
        },
        ("figures", DETAIL),
        "result_samples_per_second is 19510.7",
    ),
    forgery(
        "a better rate in the summary alone",
        |home| {
            let summary = resnet(home, &format!("Offline/{SUMMARY}"));
            text(
                &summary,
                "Samples per second: 19210.7",
                "Samples per second: 29210.7",
            );
        },
        ("agreement", SUMMARY),
        "the detail log has 19210.7",
    ),
    Forgery {
        line: false,
        ..forgery(
            "an INVALID run, with VALID in its detail log",
            |home| {
                let summary = resnet(home, &format!("MultiStream/{SUMMARY}"));
                text(&summary, "Result is : VALID", "Result is : INVALID");
            },
            ("agreement", SUMMARY),
            "has no VALID",
        )
    },
    forgery(
        "a run in accuracy mode",
        |home| {
            let log = resnet(home, &format!("SingleStream/{DETAIL}"));
            edit::log_value(&log, "effective_test_mode", "\"AccuracyOnly\"");
        },
        ("mode", DETAIL),
        "AccuracyOnly",
    ),
    forgery(
        "TEST01 that was never run",
        |home| test_from_result(home, "TEST01"),
        (
            "own-run",
            "SingleStream/TEST01/performance/run_1/mlperf_log_detail.txt",
        ),
        "the same run as",
    ),
    forgery(
        "TEST04 that was never run, with its setting written in",
        |home| {
            test_from_result(home, "TEST04");
            let log = resnet(home, &format!("SingleStream/TEST04/{DETAIL}"));
            edit::log_value(&log, "effective_performance_issue_same", "true");
        },
        (
            "own-run",
            "SingleStream/TEST04/performance/run_1/mlperf_log_detail.txt",
        ),
        "the same run as",
    ),
    forgery(
        "TEST01 by a seed that draws other responses",
        |home| {
            let log = resnet(home, &format!("SingleStream/TEST01/{DETAIL}"));
            edit::log_value(&log, "effective_accuracy_log_rng_seed", "1");
        },
        (
            "test-setting",
            "SingleStream/TEST01/performance/run_1/mlperf_log_detail.txt",
        ),
        "720381539243781796",
    ),
    forgery(
        "TEST01 that compared a tenth of the accuracy run",
        |home| {
            let verdict = resnet(home, "SingleStream/TEST01/verify_accuracy.txt");
            text(
                &verdict,
                "num_acc_log_entries = 50000",
                "num_acc_log_entries = 5000",
            );
        },
        ("test-accuracy", "SingleStream/TEST01/verify_accuracy.txt"),
        "the data set has 50000",
    ),
    forgery(
        "TEST01 that compared more than its run had",
        |home| {
            let verdict = resnet(home, "SingleStream/TEST01/verify_accuracy.txt");
            let output = fs::read_to_string(&verdict).unwrap();
            let line = output
                .lines()
                .find(|line| line.starts_with("num_perf_log_entries"));
            text(&verdict, line.unwrap(), "num_perf_log_entries = 99000000");
        },
        ("test-accuracy", "SingleStream/TEST01/verify_accuracy.txt"),
        "num_perf_log_entries is 99000000",
    ),
    forgery(
        "the accuracy of a tenth of the data set",
        |home| {
            let accuracy = resnet(home, "Offline/accuracy/accuracy.txt");
            text(&accuracy, "good=38069, total=50000", "good=3807, total=5000");
        },
        ("dataset", "Offline/accuracy/accuracy.txt"),
        "accuracy is of 5000 samples",
    ),
    forgery(
        "a better accuracy than its counts",
        |home| edit::accuracy_alone(&resnet(home, "Offline/accuracy/accuracy.txt"), "77.138"),
        ("accuracy", "Offline/accuracy/accuracy.txt"),
        "38069 of 50000 are 76.138 %",
    ),
    forgery(
        "another system's run",
        |home| {
            let other = "results/HPE_Proliant_DL380_RTX_PRO_4500_PCIe_32GBx5_TRT/resnet/MultiStream";
            let run = "performance/run_1";
            fs::remove_dir_all(resnet(home, "MultiStream/performance/run_1")).unwrap();
            tree::copy(
                &home.join(other).join(run),
                &resnet(home, "MultiStream/performance/run_1"),
            );
        },
        ("own-run", DETAIL),
        "HPE_Proliant_DL380_RTX_PRO_4500_PCIe_32GBx5_TRT/resnet/MultiStream/performance/run_1/mlperf_log_detail.txt",
    ),
    forgery(
        "another submitter's run, in another division",
        |home| tree::copy(&home.join(RUN), &division(home, "open").join("Forger").join(RUN)),
        ("own-run", DETAIL),
        "the same run as closed/HPE/results/HPE_PROLIANT_DL145_RTX_PRO_4500_PCIE_32GBx1_TRT_TRT/resnet/MultiStream",
    ),
    Forgery {
        tree: POWER,
        line: false,
        ..forgery(
            "samples of little power written in twice",
            |home| {
                let path = measured(home, "run_1/spl.txt");
                let samples = fs::read_to_string(&path).unwrap();
                let twice: String = samples
                    .split_inclusive('\n')
                    .flat_map(|line| [line, line])
                    .collect();
                fs::write(path, twice).unwrap();
            },
            ("power", "run_1/spl.txt"),
            "samples in a window of",
        )
    },
    Forgery {
        tree: POWER,
        line: false,
        ..forgery(
            "the ranging run in the place of the measured one",
            |home| {
                fs::remove_dir_all(measured(home, "run_1")).unwrap();
                tree::copy(&measured(home, "ranging"), &measured(home, "run_1"));
            },
            ("power-session", "performance/power"),
            "outside of the testing phase",
        )
    },
];

fn findings(root: &Path, round: &str) -> Vec<Finding> {
    strict(&Tree::scan(root).unwrap(), &named(round)).findings
}

/// A copy of a published tree.
fn published(tree: &str) -> Option<tempfile::TempDir> {
    let source = published_results(tree)?;
    let (_, below) = tree.split_once('/').unwrap();
    let copy = tempfile::tempdir().unwrap();
    tree::copy(&source, &copy.path().join(below));
    Some(copy)
}

fn each_is_found(tree: &str) {
    let (round, below) = tree.split_once('/').unwrap();
    let Some(clean) = published(tree) else { return };
    let before = findings(clean.path(), round);
    let all = FORGERIES.iter().chain(&STATEMENTS);
    for forgery in all.filter(|forgery| forgery.tree == tree) {
        let copy = published(tree).unwrap();
        (forgery.edit)(&copy.path().join(below));
        let new: Vec<_> = findings(copy.path(), round)
            .into_iter()
            .filter(|finding| !before.contains(finding))
            .collect();
        let found = new.iter().any(|finding| {
            finding.rule.starts_with(&format!("{}: ", forgery.rule))
                && finding.severity == forgery.severity
                && finding.path.ends_with(forgery.file)
                && finding.message.contains(forgery.says)
                && finding.line.is_some() == forgery.line
                && !finding.fix.is_empty()
        });
        assert!(found, "{}: {new:#?}", forgery.name);
    }
}

#[test]
fn every_forgery_is_found_with_its_place_and_a_fix() {
    each_is_found(NEW);
}

#[test]
fn forgeries_in_the_classic_layout_are_found() {
    each_is_found("v5.1/closed/HPE");
}

#[test]
fn forged_power_is_found_too() {
    each_is_found(POWER);
}
