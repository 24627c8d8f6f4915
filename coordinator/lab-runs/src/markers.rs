//! The markers of a run: the reasons why its figure is not an MLPerf result. They are derived from the run's spec, its conf files and its signed
//! evidence. [`prescribed_settings`](super::prescribed_settings) decides what the conf files may change.
//!
//! Whether a staged tree meets the rules is the checker's decision.

use regatta_loadgen_conf::{Conf, ConfError, ConfKind, TestSettings};
use regatta_types::{
    Mode,
    documents::{RunLength, RunMarker, RunSpec},
};

use super::prescribed_settings::departures;
use regatta_lab_store::RunRow;

/// A marker with its reason as a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkerReason {
    pub marker: RunMarker,
    /// The reason for the marker.
    pub reason: String,
}

/// Returns a run's markers, each once.
pub fn markers(row: &RunRow) -> Vec<RunMarker> {
    let mut markers: Vec<_> = marker_reasons(row).iter().map(|found| found.marker).collect();
    markers.sort_unstable();
    markers.dedup();
    markers
}

/// Returns a run's markers with every reason.
pub fn marker_reasons(row: &RunRow) -> Vec<MarkerReason> {
    let spec = &row.draft.spec;
    let found = |marker, reason| MarkerReason { marker, reason };
    let mut reasons: Vec<_> = spec
        .submission_obstacles()
        .into_iter()
        .map(|obstacle| found(obstacle.marker(), obstacle.to_string()))
        .collect();
    if !reasons.iter().any(|known| known.marker == RunMarker::Short) {
        let shorter = shorter_settings(spec).into_iter();
        reasons.extend(shorter.map(|reason| found(RunMarker::Short, reason)));
    }
    if spec.mode == Mode::FindPeakPerformance {
        let reason = "FindPeakPerformance searches for the highest rate";
        reasons.push(found(RunMarker::NotAResult, reason.to_owned()));
    }
    if spec.mode == Mode::SubmissionRun {
        let reason = "SubmissionRun writes both modes into one log, and a submission has a log of each mode";
        reasons.push(found(RunMarker::NotAResult, reason.to_owned()));
    }
    if let Ok([required, used]) = settings(spec) {
        let departures = departures(spec, &required, &used).into_iter();
        reasons.extend(departures.map(|reason| found(RunMarker::NotAResult, reason)));
    }
    // The device knows more than the spec, for example that a requested state was not reached.
    let of_device = row
        .outcome
        .iter()
        .flat_map(|outcome| &outcome.judgement.not_a_measurement);
    for reason in of_device {
        if !reasons.iter().any(|known| known.reason == *reason) {
            reasons.push(found(RunMarker::NotAResult, reason.clone()));
        }
    }
    reasons
}

/// Returns the length that a spec's conf files give its run. `requested` distinguishes a test run from a duration of 60 s.
pub(super) fn actual_length(spec: &RunSpec, requested: RunLength) -> RunLength {
    let Ok([required, used]) = settings(spec) else {
        return requested;
    };
    match requested {
        _ if used.min_duration_ms >= required.min_duration_ms => RunLength::Full,
        RunLength::Full => RunLength::Duration(used.min_duration_ms),
        requested => requested,
    }
}

/// Returns the shortest time of a run with these settings, in milliseconds. `None` when its conf files cannot be read.
pub fn min_duration_ms(spec: &RunSpec) -> Option<u64> {
    settings(spec).ok().map(|[_, used]| used.min_duration_ms)
}

/// Returns the settings in `user.conf` that make the run shorter than `mlperf.conf` requires.
fn shorter_settings(spec: &RunSpec) -> Vec<String> {
    // An accuracy run is one pass over the data set.
    let Some([required, used]) = settings(spec).ok().filter(|_| spec.mode.has_verdict()) else {
        return Vec::new();
    };
    [
        ("min_duration", required.min_duration_ms, used.min_duration_ms),
        ("min_query_count", required.min_query_count, used.min_query_count),
    ]
    .into_iter()
    .filter(|(_, required, used)| used < required)
    .map(|(key, required, used)| format!("{key} is {used}, {} requires {required}", spec.round))
    .collect()
}

/// Returns the settings of `mlperf.conf` alone, and those with `user.conf`.
fn settings(spec: &RunSpec) -> Result<[TestSettings; 2], ConfError> {
    let model = &spec.benchmark.loadgen_model;
    let mut required = TestSettings::new(spec.scenario, spec.mode);
    let conf = Conf::parse("mlperf.conf", &spec.conf.mlperf_conf)?;
    required.apply(&conf, ConfKind::Mlperf, model)?;
    let mut used = required.clone();
    let conf = Conf::parse("user.conf", &spec.conf.user_conf)?;
    used.apply(&conf, ConfKind::User, model)?;
    Ok([required, used])
}
