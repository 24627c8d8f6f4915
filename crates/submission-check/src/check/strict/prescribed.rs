//! Checks the settings that the round's `mlperf.conf` prescribes. Only the open division may change them.

use regatta_types::Scenario;

use super::logged_run::{LoggedRun, SIX_DIGITS};
use crate::check::{finding::Findings, rules};

/// Checks a run's latency percentile and its samples per query.
pub(super) fn check(run: &LoggedRun<'_>, findings: &mut Findings) {
    if !run.case.bound() {
        return;
    }
    let Some(scenario) = run.scenario() else { return };
    // Offline has no percentile of its own: LoadGen logs the same value for every Offline run.
    if scenario != Scenario::Offline {
        let key = "effective_target_latency_percentile";
        let share = of_round(run, scenario, "target_latency_percentile").map(|percent| percent / 100.0);
        same(run, key, share, findings);
    }
    if scenario == Scenario::MultiStream {
        let samples = of_round(run, scenario, "samples_per_query");
        same(run, "effective_samples_per_query", samples, findings);
    }
}

/// Returns the value from the round's `mlperf.conf`, looked up in LoadGen's order of precedence.
fn of_round(run: &LoggedRun<'_>, scenario: Scenario, key: &str) -> Option<f64> {
    let model = run.case.job.benchmark.as_str();
    let conf = &run.case.context.round.mlperf_conf;
    let names = [
        format!("{model}.{scenario}.{key}"),
        format!("*.{scenario}.{key}"),
        format!("{model}.*.{key}"),
        format!("*.*.{key}"),
    ];
    names.iter().find_map(|name| conf.get(name))?.parse().ok()
}

fn same(run: &LoggedRun<'_>, key: &str, expected: Option<f64>, findings: &mut Findings) {
    let (Some(found), Some(expected)) = (run.number(key), expected) else {
        return;
    };
    if (found - expected).abs() > expected * SIX_DIGITS {
        let text = format!("{key} is {found}, the round's mlperf.conf has {expected}");
        let fix = "take it out of user.conf and repeat the run";
        findings.error(rules::PRESCRIBED, (run.path, run.log.line(key)), text, fix);
    }
}
