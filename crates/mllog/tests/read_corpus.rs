//! Tests of the readers on published results, which are not part of the repository.

#![expect(clippy::print_stderr, reason = "a test says how much it read")]

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use regatta_mllog::read::{
    AccuracyLogError, Summary, Verdict, accuracy_file, detail_file, file_name, summary_file, trace_file,
};
use regatta_test_support::published_results;

/// The logs of one name below the rounds' directories; `None` without published results.
fn published(name: &str) -> Option<Vec<PathBuf>> {
    let mut files = Vec::new();
    for round in ["v2.1", "v5.1", "v6.0"] {
        let before = files.len();
        collect(&published_results(round)?, OsStr::new(name), &mut files);
        if name != file_name::TRACE {
            assert!(files.len() > before, "{round} has no {name}");
        }
    }
    Some(files)
}

#[expect(
    clippy::unwrap_used,
    reason = "published results are there, or the test is skipped"
)]
fn collect(directory: &Path, name: &OsStr, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, name, files);
        } else if path.file_name() == Some(name) {
            files.push(path);
        }
    }
}

#[test]
fn every_published_summary_reads() {
    let Some(files) = published(file_name::SUMMARY) else {
        return;
    };
    for path in &files {
        let summary = summary_file(path)
            .unwrap_or_else(|error| panic!("{error}: {:?}", std::error::Error::source(&error)));
        assert_eq!(
            (summary.warnings.is_some(), summary.errors.is_some()),
            (true, true),
            "{}",
            path.display()
        );
        if summary.verdict.is_some() {
            assert_complete(&summary, path);
        }
    }
    eprintln!("{} summaries", files.len());
}

/// Checks that the reader knows everything in a performance summary, and that the verdict agrees with its requirements.
fn assert_complete(summary: &Summary, path: &Path) {
    assert!(
        summary.scenario.is_some() && summary.mode.is_some(),
        "{}",
        path.display()
    );
    assert!(summary.metrics[0].number().is_some(), "{}", path.display());
    let satisfied = summary
        .requirements
        .iter()
        .all(|requirement| requirement.satisfied);
    assert_eq!(
        summary.verdict == Some(Verdict::Valid),
        satisfied,
        "{}",
        path.display()
    );
    assert!(
        summary
            .parameter("min_duration (ms)")
            .is_some_and(|entry| entry.number().is_some())
    );
    let known = |text: &str| {
        text == "Per-query latency:"
            || text.starts_with("WARNING: sample_concatenate_permutation")
            || text.contains("samples")
    };
    assert!(
        summary.other.iter().all(|(_, text)| known(text)),
        "{}: {:?}",
        path.display(),
        summary.other
    );
}

#[test]
fn every_published_detail_log_reads_and_agrees_with_its_summary() {
    let Some(files) = published(file_name::DETAIL) else {
        return;
    };
    let mut records = 0;
    for path in &files {
        let log = detail_file(path)
            .unwrap_or_else(|error| panic!("{error}: {:?}", std::error::Error::source(&error)));
        assert_eq!(log.passed_over(), 0, "{}", path.display());
        assert!(
            log.records().iter().all(|record| record.quirk.is_none()),
            "{}",
            path.display()
        );
        let text = |key| log.value(key).and_then(|value| value.as_str());
        let summary = summary_file(&path.with_file_name(file_name::SUMMARY)).unwrap();
        assert_eq!(
            summary.errors,
            Some(log.errors().count() as u64),
            "{}",
            path.display()
        );
        if let Some(verdict) = summary.verdict {
            let word = if verdict == Verdict::Valid {
                "VALID"
            } else {
                "INVALID"
            };
            assert_eq!(text("result_validity"), Some(word), "{}", path.display());
            assert_eq!(
                text("effective_scenario"),
                summary.scenario.map(|scenario| scenario.as_str())
            );
            let seed = log
                .value("effective_qsl_rng_seed")
                .and_then(|value| value.as_u64())
                .unwrap();
            assert_eq!(summary.parameter("qsl_rng_seed").unwrap().value, seed.to_string());
        }
        records += log.records().len();
    }
    eprintln!("{} detail logs, {records} records", files.len());
}

#[test]
fn every_published_accuracy_log_reads_as_far_as_it_goes() {
    let Some(files) = published(file_name::ACCURACY) else {
        return;
    };
    let (mut whole, mut truncated) = (0, 0);
    for path in &files {
        let written = fs::read(path).unwrap();
        let has_cut = written
            .windows(6)
            .any(|window| window == b"\n...\r\n" || window == b"\n...\n\n");
        match accuracy_file(path).unwrap().find_map(Result::err) {
            None => whole += usize::from(!has_cut),
            Some(AccuracyLogError::Truncated { offset }) => {
                assert!(
                    has_cut && offset.abs_diff(4096) < 32,
                    "{} at {offset}",
                    path.display()
                );
                truncated += 1;
            }
            Some(error) => panic!("{}: {error}", path.display()),
        }
    }
    assert_eq!(
        whole + truncated,
        files.len(),
        "a truncated log passed for a whole one"
    );
    eprintln!("{whole} whole accuracy logs, {truncated} truncated ones");
}

#[test]
fn every_published_trace_reads() {
    let Some(files) = published(file_name::TRACE) else {
        return;
    };
    for path in &files {
        assert!(
            trace_file(path).unwrap().all(|event| event.is_ok()),
            "{}",
            path.display()
        );
    }
    eprintln!("{} traces", files.len());
}
