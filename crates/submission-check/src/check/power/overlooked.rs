//! Faults that the official session checks overlook: errors after the first warning, missing samples, two runs that do not belong together, and
//! documents that contradict each other.

use super::{
    contradictions, phases, ptd_log,
    samples::{self, Reading, RunWindow},
    session::{Session, SessionLogs},
    session_fault::SessionFault,
};
use crate::{check::run_log::RunLog, tree::Tree};

/// The settings that both runs must share.
const SETTINGS: [&str; 8] = [
    "effective_scenario",
    "effective_test_mode",
    "effective_target_qps",
    "effective_target_latency_ns",
    "effective_samples_per_query",
    "effective_min_duration_ms",
    "effective_min_query_count",
    "effective_performance_sample_count",
];

/// Returns the faults of a session. `lines` are those that the check of PTDaemon's log has found.
pub(super) fn faults(
    session: &Session<'_>,
    lines: Vec<(u64, String)>,
    known: SessionLogs<'_>,
) -> Vec<SessionFault> {
    let fault = |name: &str, line: Option<u64>, text: String| SessionFault {
        path: session.at(name),
        line,
        text,
    };
    let mut found: Vec<SessionFault> = lines
        .into_iter()
        .map(|(line, text)| fault(ptd_log::FILE, Some(line), text))
        .collect();
    found.extend(ptd_log::missing_end(session).map(|seconds| {
        let text = format!(
            "ends {seconds:.0} s before the end of the testing run: what PTDaemon reported then is missing"
        );
        fault(ptd_log::FILE, None, text)
    }));
    found.extend(phases::an_hour_off(session).map(|phase| {
        let text = format!(
            "LoadGen's times of the {phase} run are an hour from those of its phase: they must be in UTC"
        );
        fault("power/client.json", None, text)
    }));
    found.extend(contradictions::faults(session));
    let own = |run: &str| {
        let name = format!("{run}/mlperf_log_detail.txt");
        RunLog::read(session.tree, &session.at(&name)).map_err(|error| fault(&name, None, error.0))
    };
    let own_ranging = known.ranging.is_none().then(|| own("ranging")).transpose();
    let own_testing = known.run.is_none().then(|| own("run_1")).transpose();
    let (own_ranging, own_testing) = match (own_ranging, own_testing) {
        (Ok(ranging), Ok(testing)) => (ranging, testing),
        (ranging, testing) => {
            found.extend(ranging.err().into_iter().chain(testing.err()));
            return found;
        }
    };
    let ranging = known.ranging.or(own_ranging.as_ref());
    let testing = known.run.or(own_testing.as_ref());
    let Some((ranging, testing)) = ranging.zip(testing) else {
        return found;
    };
    for (run, log, least) in [
        ("ranging", ranging, samples::MIN_RANGING_SHARE),
        ("run_1", testing, samples::MIN_TESTING_SHARE),
    ] {
        let name = format!("{run}/spl.txt");
        let text = samples_finding(session.tree, &session.at(&name), log, least);
        found.extend(text.map(|text| fault(&name, None, text)));
    }
    for key in SETTINGS {
        if ranging.value(key) != testing.value(key) {
            let text = format!("the ranging run and the testing run differ in {key}");
            found.push(fault("ranging/mlperf_log_detail.txt", None, text));
        }
    }
    found
}

/// Returns the fault in the samples of a run, if there is one.
fn samples_finding(tree: &Tree, path: &str, log: &RunLog, least: f64) -> Option<String> {
    let Some(window) = RunWindow::of_log(log) else {
        return Some("the run's log has no power_begin or no power_end".to_owned());
    };
    let reading = Reading {
        every_line: false,
        zeros: false,
        factor: false,
    };
    match samples::mean(tree, path, window, reading) {
        Ok(mean) => samples::finding(mean, least),
        Err(failure) => Some(failure.0),
    }
}
