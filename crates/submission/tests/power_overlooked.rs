//! What the official power checker accepts and the strict check of a session does not: a published session, changed in one place.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::{fs, path::Path};

use regatta_submission::{check::power, tree::Tree};
use regatta_test_support::{published_results, round};

const PUBLISHED: &str = "v2.1/closed/NVIDIA/results/Orin_TRT_MaxQ/resnet50/Offline/performance";

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to.join(entry.file_name())),
            false => drop(fs::copy(entry.path(), to.join(entry.file_name())).unwrap()),
        }
    }
}

/// What the strict check finds after a change of one file.
fn overlooked(published: &Path, file: &str, change: impl Fn(&str) -> String) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    copy(published, directory.path());
    let path = directory.path().join(file);
    let text = fs::read_to_string(&path).unwrap();
    let changed = change(&text);
    fs::write(path, &changed).unwrap();
    let mut rules = round("v2.1").power.unwrap();
    // PTDaemon's times are UTC, as later rounds read them.
    rules.log_in_local_time = false;
    power::overlooked(&Tree::scan(directory.path()).unwrap(), "", &rules)
}

#[test]
fn one_change_is_one_finding() {
    let Some(published) = published_results(PUBLISHED) else {
        return;
    };
    let log = "run_1/mlperf_log_detail.txt";
    assert_eq!(overlooked(&published, log, str::to_owned), [""; 0]);
    // The log ends in the middle of the testing run.
    let found = overlooked(&published, "power/ptd_logs.txt", |text| {
        let testing = text.find("_testing'").unwrap();
        text[..testing + 40].to_owned()
    });
    assert!(
        found.len() == 1 && found[0].contains("before the testing run"),
        "{found:?}"
    );
    // Local time, an hour ahead of UTC.
    let found = overlooked(&published, log, |text| {
        let later = |line: &str| match line.contains("\"power_begin\"") || line.contains("\"power_end\"") {
            true => {
                let at = line.find("\"value\": \"").unwrap() + "\"value\": \"MM-DD-YYYY ".len();
                let hour: u32 = line[at..at + 2].parse().unwrap();
                format!("{}{:02}{}", &line[..at], (hour + 1) % 24, &line[at + 2..])
            }
            false => line.to_owned(),
        };
        text.lines().map(|line| later(line) + "\n").collect()
    });
    assert!(found.iter().any(|text| text.contains("an hour")), "{found:?}");
    for key in ["effective_min_duration_ms", "effective_target_qps"] {
        let found = overlooked(&published, log, |text| {
            let changed = |line: &str| match line.contains(key) {
                true => line.replace("\"value\": ", "\"value\": 1"),
                false => line.to_owned(),
            };
            text.lines().map(|line| changed(line) + "\n").collect()
        });
        assert!(found.iter().any(|text| text.contains(key)), "{key}: {found:?}");
    }
}
