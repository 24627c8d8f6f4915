//! Tests of twenty single faults in a correct published tree: the strict check finds each, and the official verdict is the
//! official checker's. The corpus has the expected results beside the faults.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may say what it expects")]

mod forgeries;
mod own_run;
mod statements;

use std::{fs, path::Path};

use regatta_submission_check::{
    check::{Severity, Verdict, as_official, strict},
    tree::Tree,
};
use regatta_test_support::{edit, official_answers, published_results, round, tree};

const SYSTEM: &str = "HPE_PROLIANT_DL145_RTX_PRO_4500_PCIE_32GBx1_TRT_TRT";

/// A fault: the beginning of its name in the corpus, the edit, and the rule that the strict check names (`None`: it accepts).
struct SingleFault {
    name: &'static str,
    edit: fn(&Path),
    rule: Option<&'static str>,
}

fn resnet(home: &Path, path: &str) -> std::path::PathBuf {
    home.join("results").join(SYSTEM).join("resnet").join(path)
}

fn detail(home: &Path, scenario: &str) -> std::path::PathBuf {
    resnet(home, scenario).join("performance/run_1/mlperf_log_detail.txt")
}

fn description(home: &Path) -> std::path::PathBuf {
    home.join("systems").join(format!("{SYSTEM}.json"))
}

const FAULTS: [SingleFault; 20] = [
    SingleFault {
        name: "result_validity INVALID",
        edit: |home| edit::log_value(&detail(home, "SingleStream"), "result_validity", "\"INVALID\""),
        rule: Some("valid"),
    },
    SingleFault {
        name: "num_errors=1",
        edit: |home| {
            let log = detail(home, "SingleStream");
            edit::append_error_line(&log);
            edit::log_value(&log, "num_errors", "1");
        },
        rule: Some("loadgen-errors"),
    },
    SingleFault {
        name: "qsl seed wrong",
        edit: |home| edit::log_value(&detail(home, "SingleStream"), "effective_qsl_rng_seed", "1"),
        rule: Some("seeds"),
    },
    SingleFault {
        name: "min_duration 599999",
        edit: |home| {
            edit::log_value(
                &detail(home, "SingleStream"),
                "effective_min_duration_ms",
                "599999",
            )
        },
        rule: Some("min-duration"),
    },
    SingleFault {
        name: "Offline samples_per_query 24575",
        edit: |home| edit::log_value(&detail(home, "Offline"), "effective_samples_per_query", "24575"),
        rule: Some("offline-samples"),
    },
    SingleFault {
        name: "accuracy below target",
        edit: |home| edit::accuracy(&resnet(home, "SingleStream/accuracy/accuracy.txt"), "75.69"),
        rule: Some("accuracy"),
    },
    SingleFault {
        name: "accuracy at 75.6954 exactly",
        edit: |home| edit::accuracy(&resnet(home, "SingleStream/accuracy/accuracy.txt"), "75.6954"),
        rule: None,
    },
    SingleFault {
        name: "hash line missing",
        edit: |home| edit::drop_lines(&resnet(home, "SingleStream/accuracy/accuracy.txt"), "hash="),
        rule: Some("accuracy-hash"),
    },
    SingleFault {
        name: "accuracy.json > 10240 bytes",
        edit: |home| {
            let path = resnet(home, "SingleStream/accuracy/mlperf_log_accuracy.json");
            fs::write(path, vec![b' '; 10241]).unwrap();
        },
        rule: Some("truncated"),
    },
    SingleFault {
        name: "user.conf missing",
        edit: |home| fs::remove_file(resnet(home, "SingleStream/user.conf")).unwrap(),
        rule: Some("measurements"),
    },
    SingleFault {
        name: "measurements field empty",
        edit: |home| edit::json_text(&resnet(home, "SingleStream/measurements.json"), "retraining", ""),
        rule: Some("measurements"),
    },
    SingleFault {
        name: "system json system_type bogus",
        edit: |home| edit::json_text(&description(home), "system_type", "Edge"),
        rule: Some("system-type"),
    },
    SingleFault {
        name: "system json division \"Closed\"",
        edit: |home| edit::json_text(&description(home), "division", "Closed"),
        rule: None,
    },
    SingleFault {
        name: "scenario MultiStream missing",
        edit: |home| fs::remove_dir_all(resnet(home, "MultiStream")).unwrap(),
        rule: Some("scenarios"),
    },
    SingleFault {
        name: "TEST01 dir missing",
        edit: |home| fs::remove_dir_all(resnet(home, "SingleStream/TEST01")).unwrap(),
        rule: Some("tests"),
    },
    SingleFault {
        name: "TEST01 verify file forged",
        edit: |home| {
            fs::write(
                resnet(home, "SingleStream/TEST01/verify_performance.txt"),
                "TEST PASS\n",
            )
            .unwrap();
        },
        rule: Some("test-performance"),
    },
    SingleFault {
        name: "dotfile in results",
        edit: |home| fs::write(resnet(home, ".DS_Store"), "x").unwrap(),
        rule: Some("names"),
    },
    SingleFault {
        name: "Offline inferred from SingleStream",
        edit: |home| replace(home, "Offline", "SingleStream"),
        rule: None,
    },
    SingleFault {
        name: "SingleStream replaced by Offline",
        edit: |home| replace(home, "SingleStream", "Offline"),
        rule: Some("inferred"),
    },
    SingleFault {
        name: "detail log: garbage MLLOG line",
        edit: |home| edit::append(&detail(home, "SingleStream"), ":::MLLOG {broken\n"),
        rule: Some("log"),
    },
];

fn replace(home: &Path, scenario: &str, by: &str) {
    fs::remove_dir_all(resnet(home, scenario)).unwrap();
    tree::copy(&resnet(home, by), &resnet(home, scenario));
}

/// Errors of a strict check, without the system that stays as published.
fn errors(root: &Path) -> Vec<String> {
    let tree = Tree::scan(root).unwrap();
    let report = strict(&tree, &round("v6.0"));
    let errors = report
        .findings
        .into_iter()
        .filter(|finding| finding.severity == Severity::Error);
    errors
        .map(|finding| {
            format!(
                "{} | {}:{:?} {}",
                finding.rule, finding.path, finding.line, finding.message
            )
        })
        .collect()
}

#[test]
fn every_fault_is_found_and_the_official_verdict_is_right() {
    let (Some(source), Some(table)) = (
        published_results("v6.0/closed/HPE"),
        official_answers("mutations.csv"),
    ) else {
        return;
    };
    let table = fs::read_to_string(table).unwrap();
    let expected = edit::csv_column(&table, 3);
    let clean = tempfile::tempdir().unwrap();
    tree::copy(&source, &clean.path().join("closed/HPE"));
    let published = errors(clean.path());
    let round = round("v6.0");
    for fault in &FAULTS {
        let (_, official) = expected
            .iter()
            .find(|(name, _)| name.starts_with(fault.name))
            .unwrap_or_else(|| panic!("{} is in the table", fault.name));
        let copy = tempfile::tempdir().unwrap();
        let home = copy.path().join("closed/HPE");
        tree::copy(&source, &home);
        (fault.edit)(&home);

        let tree = Tree::scan(copy.path()).unwrap();
        let judged = as_official(&tree, &round, None).unwrap();
        let word = match judged.verdict {
            Verdict::Accept => "accept",
            Verdict::Reject => "reject",
            Verdict::Crash(_) => "crash",
        };
        assert!(
            official.starts_with(word),
            "{}: {word}, not {official}\n{:?}",
            fault.name,
            judged.notes
        );

        let new: Vec<_> = errors(copy.path())
            .into_iter()
            .filter(|error| !published.contains(error))
            .collect();
        match fault.rule {
            None => assert!(new.is_empty(), "{}: {new:#?}", fault.name),
            Some(rule) => {
                let found = new.iter().any(|error| error.starts_with(&format!("{rule}: ")));
                assert!(found, "{}: no {rule} in {new:#?}", fault.name);
            }
        }
    }
}
