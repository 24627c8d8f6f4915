//! Faults that the official session checks overlook: errors after the first warning, missing samples, two runs that do not belong together.

use regatta_config::round::PowerRules;

use super::{
    SessionLogs, phases, ptd_log, review,
    samples::{self, Reading},
    session::Session,
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

/// Returns the findings of the strict check in the session in `directory` of `tree` (`""` for the root) beyond the official checks, one
/// sentence each.
#[must_use]
pub fn overlooked(tree: &Tree, directory: &str, rules: &PowerRules) -> Vec<String> {
    let at = |name: &str| match directory {
        "" => name.to_owned(),
        directory => format!("{directory}/{name}"),
    };
    let (_, lines) = review(tree, directory, rules, SessionLogs::default());
    let mut found: Vec<String> = lines
        .into_iter()
        .map(|(line, text)| format!("{}:{line}: {text}", at("power/ptd_logs.txt")))
        .collect();
    if let Ok(session) = Session::read(tree, directory, rules, SessionLogs::default()) {
        found.extend(ptd_log::missing_end(&session).map(|seconds| {
            let path = at("power/ptd_logs.txt");
            format!("{path} ends {seconds:.0} s before the testing run: what PTDaemon reported then is lost")
        }));
        found.extend(phases::an_hour_off(&session).map(|phase| {
            format!(
                "LoadGen's times of the {phase} run are an hour from those of its phase: they must be in UTC"
            )
        }));
    }
    let log = |part: &str| {
        let path = at(&format!("{part}/mlperf_log_detail.txt"));
        RunLog::read(tree, &path).map_err(|error| format!("{path}: {}", error.0))
    };
    let (ranging, testing) = match (log("ranging"), log("run_1")) {
        (Ok(ranging), Ok(testing)) => (ranging, testing),
        (Err(error), _) | (_, Err(error)) => {
            found.push(error);
            return found;
        }
    };
    for (part, log) in [("ranging", &ranging), ("run_1", &testing)] {
        let path = at(&format!("{part}/spl.txt"));
        found.extend(samples_finding(tree, &path, log).map(|text| format!("{path}: {text}")));
    }
    for key in SETTINGS {
        if ranging.value(key) != testing.value(key) {
            found.push(format!("the ranging run and the testing run differ in {key}"));
        }
    }
    found
}

/// Returns the fault in the samples of a run, if there is one.
fn samples_finding(tree: &Tree, path: &str, log: &RunLog) -> Option<String> {
    let Some(window) = log.text("power_begin").zip(log.text("power_end")) else {
        return Some("the run's log has no power_begin or no power_end".to_owned());
    };
    let reading = Reading {
        every_line: false,
        zeros: false,
        factor: false,
    };
    match samples::mean(tree, path, window, reading) {
        Ok(mean) => samples::finding(mean),
        Err(error) => Some(error),
    }
}
