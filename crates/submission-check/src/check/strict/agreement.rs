//! Checks that the runs of a scenario use the same system under test, sample library and LoadGen.

use super::case::Case;
use crate::check::{
    finding::{Findings, Severity},
    rules,
    run_log::{RunLog, shown},
};

const LIBRARY: &str = "qsl_reported_total_count";

/// Compares the accuracy run with the performance run.
pub(super) fn check(
    case: &Case<'_>,
    performance: Option<&RunLog>,
    accuracy: Option<&RunLog>,
    findings: &mut Findings,
) {
    let (Some(performance), Some(accuracy)) = (performance, accuracy) else {
        return;
    };
    let path = format!("{}/accuracy/mlperf_log_detail.txt", case.results);
    compare((performance, accuracy), &path, findings);
    library((performance, accuracy), &path, Severity::Warning, findings);
}

/// Compares the run of a test, whose log is at `path`, with the performance run that it repeats.
pub(super) fn check_test(both: (&RunLog, &RunLog), path: &str, findings: &mut Findings) {
    compare(both, path, findings);
    let (reference, run) = both;
    let counts = [reference, run].map(|log| log.number(LIBRARY));
    // A performance run's library may contain only the samples that it draws from. A test that draws from fewer samples is
    // easier.
    let severity = match counts {
        [Some(reference), Some(run)] if run < reference => Severity::Error,
        _ => Severity::Warning,
    };
    library(both, path, severity, findings);
}

fn compare((reference, run): (&RunLog, &RunLog), path: &str, findings: &mut Findings) {
    for (key, severity) in [
        ("effective_scenario", Severity::Error),
        ("qsl_name", Severity::Warning),
        ("sut_name", Severity::Warning),
        ("loadgen_version", Severity::Warning),
    ] {
        same((reference, run), key, path, severity, findings);
    }
}

fn library(both: (&RunLog, &RunLog), path: &str, severity: Severity, findings: &mut Findings) {
    same(both, LIBRARY, path, severity, findings);
}

fn same(
    (reference, run): (&RunLog, &RunLog),
    key: &str,
    path: &str,
    severity: Severity,
    findings: &mut Findings,
) {
    let (Some(expected), Some(found)) = (reference.value(key), run.value(key)) else {
        return;
    };
    if expected != found {
        let text = format!(
            "{key} is {}, the performance run has {}",
            shown(found),
            shown(expected)
        );
        let fix = "take all runs of a result from the same system, data and LoadGen";
        findings.add(severity, rules::AGREEMENT, (path, run.line(key)), text, fix);
    }
}
