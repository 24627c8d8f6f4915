//! What the official power checker accepts and the strict check of a session does not: a published session, changed in one place.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::{fs, path::Path};

use regatta_submission_check::{check::power, tree::Tree};
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
    let found = power::overlooked(&Tree::scan(directory.path()).unwrap(), "", &rules);
    found.iter().map(ToString::to_string).collect()
}

#[test]
fn each_change_gives_exactly_one_finding() {
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
        found.len() == 1 && found[0].contains("before the end of the testing run"),
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

/// Changes the lines of samples in the testing run, from the hundredth to the tenth before the last, which are in its window.
fn change_samples(text: &str, change: impl Fn(&str) -> String) -> String {
    let count = text.lines().count();
    let changed = text
        .lines()
        .enumerate()
        .map(|(at, line)| match (100..count - 10).contains(&at) {
            true => change(line),
            false => format!("{line}\n"),
        });
    changed.collect()
}

#[test]
fn samples_must_be_of_the_testing_run_and_above_zero() {
    let Some(published) = published_results(PUBLISHED) else {
        return;
    };
    let samples = "run_1/spl.txt";
    for (change, expected) in [
        (("_testing", "_ranging"), "have another mark than"),
        (("Watts,", "Watts,-"), "are not above 0 W"),
        (("Watts,", "Watts,nan,"), "are not above 0 W"),
    ] {
        let found = overlooked(&published, samples, |text| {
            change_samples(text, |line| format!("{}\n", line.replace(change.0, change.1)))
        });
        assert!(
            found.iter().any(|text| text.contains(expected)),
            "{change:?}: {found:?}"
        );
    }
    // Every fifth sample is missing.
    let found = overlooked(&published, samples, |text| {
        let kept = text.lines().enumerate().filter(|(at, _)| at % 5 != 0);
        kept.map(|(_, line)| format!("{line}\n")).collect()
    });
    assert!(
        found.iter().any(|text| text.contains("samples in a window of")),
        "{found:?}"
    );
}

#[test]
fn the_configured_meter_must_be_the_one_that_ptdaemon_reads() {
    let Some(published) = published_results(PUBLISHED) else {
        return;
    };
    let found = overlooked(&published, "power/server.json", |text| {
        let at = text.find("\"device_type\":").unwrap();
        let end = at + text[at..].find(',').unwrap();
        format!("{}\"device_type\": 8{}", &text[..at], &text[end..])
    });
    assert!(
        found.len() == 1 && found[0].contains("and the configuration has 8"),
        "{found:?}"
    );
}

/// Some versions of PTDaemon print their samples, too.
#[test]
fn samples_must_be_those_of_ptdaemons_log() {
    let Some(published) = published_results(PUBLISHED) else {
        return;
    };
    let samples = fs::read_to_string(published.join("run_1/spl.txt")).unwrap();
    let log = "power/ptd_logs.txt";
    let with = |change: &dyn Fn(&str) -> String| {
        overlooked(&published, log, |text| {
            format!("{text}{}", change_samples(&samples, change))
        })
    };
    let same = with(&|line| format!("{line}\n"));
    assert_eq!(same, [""; 0]);
    let found = with(&|line| format!("{}\n", line.replace("Watts,", "Watts,1")));
    assert!(
        found.len() == 1 && found[0].contains("samples differ from their copies"),
        "{found:?}"
    );
    // A millisecond later: the samples of the log are not in the file.
    let found = with(&|line| format!("{}\n", line.replacen(",Watts", "9,Watts", 1)));
    assert!(
        found.len() == 1 && found[0].contains("samples are missing that"),
        "{found:?}"
    );
}
