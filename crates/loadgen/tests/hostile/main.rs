//! Tests of systems under test, libraries and disks that misbehave. The run ends without hanging or panicking, is invalid with a
//! reason, and keeps its logs.
#![expect(clippy::unwrap_used, reason = "a test may say what it expects")]

mod anything;
mod faulty_sut;
mod library;
mod logs;
mod search;
mod settings;
mod threads;

use std::{fs, path::Path, time::Duration};

use regatta_loadgen::{
    NativeLoadGen,
    load_gen::{LoadGen, LoadgenError, NoObserver},
    outcome::Outcome,
    request::{ConfText, RunRequest},
    sut::{
        Completer, Query, QuerySample, QuerySampleLibrary, QuerySampleResponse, ResidentLibrary, ResponseId,
        SutError, SystemUnderTest,
    },
};
use regatta_types::{Mode, Scenario};

/// A SUT made of a closure.
struct Sut<F>(F);

impl<F> SystemUnderTest for Sut<F>
where
    F: Fn(&[QuerySample], &Completer) -> Result<(), SutError> + Sync,
{
    fn name(&self) -> &str {
        "hostile"
    }

    fn issue_query(&self, query: Query<'_>, completer: &Completer) -> Result<(), SutError> {
        let samples: Vec<_> = query.iter().collect();
        (self.0)(&samples, completer)
    }
}

fn answer(id: ResponseId, completer: &Completer) {
    completer.complete(&[QuerySampleResponse::new(id, &[1, 2])]);
}

fn answer_all(samples: &[QuerySample], completer: &Completer) -> Result<(), SutError> {
    samples.iter().for_each(|sample| answer(sample.id, completer));
    Ok(())
}

/// Returns a short run, whose stall timeout is long enough for a busy machine.
fn request(scenario: Scenario, mode: Mode, dir: &Path) -> RunRequest {
    let mut request = RunRequest::new("m", scenario, mode, dir);
    let conf = "*.*.min_duration = 10\n*.*.min_query_count = 70\n*.Server.target_qps = 7000\n\
                *.Offline.target_qps = 9000\n*.SingleStream.target_latency = 0.01\n*.MultiStream.target_latency = 0.01";
    request.user_conf = Some(ConfText::new("user.conf", conf));
    request.issue.stall_timeout = Some(Duration::from_secs(120));
    request
}

fn run(
    sut: &dyn SystemUnderTest,
    qsl: &dyn QuerySampleLibrary,
    request: &RunRequest,
) -> Result<Outcome, LoadgenError> {
    NativeLoadGen.run(sut, qsl, request, &NoObserver)
}

/// 64 samples, in memory.
fn samples() -> ResidentLibrary {
    ResidentLibrary::new("library", 64)
}

/// Runs in every scenario. Each outcome must be invalid, name the fault, and have readable logs.
fn expect_fault(fault: &str, sut: &dyn SystemUnderTest, qsl: &dyn QuerySampleLibrary, stall: Duration) {
    for scenario in Scenario::ALL {
        for mode in [Mode::AccuracyOnly, Mode::PerformanceOnly] {
            let dir = tempfile::tempdir().unwrap();
            let mut request = request(scenario, mode, dir.path());
            request.issue.stall_timeout = Some(stall);
            let outcome = run(sut, qsl, &request).unwrap();
            assert_eq!(outcome.valid, Some(false), "{scenario} {mode}");
            assert!(
                outcome.reasons.iter().any(|reason| reason.contains(fault)),
                "{scenario} {mode}: {outcome:#?}"
            );
            let detail = fs::read_to_string(dir.path().join("mlperf_log_detail.txt")).unwrap();
            assert!(detail.contains("\"is_error\": true"), "{scenario} {mode}");
            let accuracy = fs::read_to_string(dir.path().join("mlperf_log_accuracy.json")).unwrap();
            assert!(accuracy.ends_with("\n]\n"), "{scenario} {mode}");
            let summary = fs::read_to_string(dir.path().join("mlperf_log_summary.txt")).unwrap();
            assert!(
                !summary.contains("Result is : VALID"),
                "{scenario} {mode}: {summary}"
            );
        }
    }
}
