//! Tests of logs that cannot be written.

use std::{os::unix::fs::symlink, path::Path};

use regatta_loadgen::load_gen::LoadgenError;
use regatta_types::{Mode, Scenario};

use crate::{Sut, answer_all, request, run, samples};

#[test]
fn a_full_disk_is_reported_for_every_log() {
    for log in ["summary.txt", "detail.txt", "accuracy.json", "trace.json"] {
        let dir = tempfile::tempdir().unwrap();
        symlink("/dev/full", dir.path().join(format!("mlperf_log_{log}"))).unwrap();
        let mut request = request(Scenario::SingleStream, Mode::SubmissionRun, dir.path());
        request.logs.trace = true;
        let error = run(&Sut(answer_all), &samples(), &request).unwrap_err();
        let LoadgenError::Log { path, source } = &error else {
            panic!("{error}")
        };
        assert!(path.ends_with(format!("mlperf_log_{log}")), "{error}");
        assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
    }
}

#[test]
fn a_missing_log_directory_is_reported() {
    let request = request(
        Scenario::Offline,
        Mode::PerformanceOnly,
        Path::new("no/such/directory"),
    );
    let error = run(&Sut(answer_all), &samples(), &request).unwrap_err();
    assert!(
        error.to_string().contains("no/such/directory/mlperf_log_"),
        "{error}"
    );
}
