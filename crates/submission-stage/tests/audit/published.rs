//! Tests against published results: each `verify_performance.txt` of the corpus from the logs beside it.

use std::path::{Path, PathBuf};

use regatta_submission_stage::audit::compare_performance;
use regatta_test_support::{published_results, round};

use crate::logs::text;

#[test]
fn published_verdicts_come_out_of_the_published_logs() {
    let (mut reproduced, mut differing) = (0, Vec::new());
    for name in ["v2.1", "v5.1", "v6.0"] {
        let round = round(name);
        let mut audits = Vec::new();
        let Some(published) = published_results(name) else {
            return;
        };
        find(&published.join("closed"), &mut audits);
        for audit in audits {
            let test = audit.file_name().unwrap().to_str().unwrap();
            let Some(rule) = round.audits.get(test) else {
                continue;
            };
            let scenario = audit.parent().unwrap();
            let results = PathBuf::from(scenario.to_str().unwrap().replace("/compliance/", "/results/"));
            let run = results.join("performance/run_1");
            if !run.is_dir() {
                eprintln!("no results beside {}", audit.display());
                continue;
            }
            let published = without_logging(&text(&audit.join("verify_performance.txt")));
            if published == "Verifying performance.\n" {
                // The script ended early, and the logs are of another attempt.
                eprintln!("broke off: {}", audit.display());
                continue;
            }
            let verdict = compare_performance(rule, &run, &audit.join("performance/run_1"));
            let verdict = verdict.unwrap_or_else(|error| panic!("{}: {error}", audit.display()));
            if verdict.text() == published {
                reproduced += 1;
            } else {
                differing.push(format!(
                    "{}: {:?} {:?}",
                    audit.display(),
                    verdict.text(),
                    published
                ));
            }
        }
    }
    // This submitter's Offline run was made again after the audits, and the verdicts name the former score.
    let (again, differing): (Vec<_>, Vec<_>) = differing
        .into_iter()
        .partition(|reported| reported.contains("DL145_RTX_PRO_4500_PCIE_32GBx1_TRT_TRT/resnet/Offline"));
    assert_eq!(
        (reproduced, again.len(), differing),
        (92, 2, Vec::<String>::new())
    );
}

fn without_logging(text: &str) -> String {
    text.lines()
        .filter(|line| !line.starts_with('['))
        .map(|line| format!("{line}\n"))
        .collect()
}

fn find(directory: &Path, audits: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.join("verify_performance.txt").is_file() {
            audits.push(path);
        } else if path.is_dir() {
            find(&path, audits);
        }
    }
}
