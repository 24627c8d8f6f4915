//! Whether the runs of a scenario are of one system under test, one sample library and one LoadGen.

use super::{own_run, scenario::Case};
use crate::check::{
    finding::{Findings, Severity},
    rules,
    run_log::{RunLog, shown},
};

/// Compares the performance and the accuracy run.
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
    own_run::check(performance, (&path, accuracy), findings);
    // A performance run's library may hold only what it draws from.
    compare((performance, accuracy), &path, Severity::Warning, findings);
    let key = "effective_scenario";
    if performance.text(key) != accuracy.text(key) {
        let found = accuracy.value(key).map_or_else(|| "missing".to_owned(), shown);
        let text = format!("the scenario is {found}, not the performance run's");
        let mend = "take both runs from the same scenario";
        findings.error(rules::AGREEMENT, (path.as_str(), accuracy.line(key)), text, mend);
    }
}

/// Compares a run, whose log lies at `path`, with the performance run before it; `library` is the severity of a sample
/// library of another size.
pub(super) fn compare(
    (reference, run): (&RunLog, &RunLog),
    path: &str,
    library: Severity,
    findings: &mut Findings,
) {
    for (key, severity) in [
        ("qsl_reported_total_count", library),
        ("qsl_name", Severity::Warning),
        ("sut_name", Severity::Warning),
        ("loadgen_version", Severity::Warning),
    ] {
        let (expected, found) = (reference.value(key), run.value(key));
        if let (Some(expected), Some(found)) = (expected, found)
            && expected != found
        {
            let text = format!(
                "{key} is {}, the performance run has {}",
                shown(found),
                shown(expected)
            );
            let mend = "take all runs of a result from the same system, data and LoadGen";
            findings.add(severity, rules::AGREEMENT, (path, run.line(key)), text, mend);
        }
    }
}
