//! Checks compliance tests: their runs like other runs, and their verdicts recomputed from the logs.

use regatta_catalogue::procedures::{Audit, Bounds, ScoreSource};
use regatta_types::Scenario;

use super::{
    accuracy, agreement,
    case::Case,
    logged_run::Purpose,
    performance,
    read_log::read_log,
    run_identity::{Role, RunIdentity},
    summary,
    test_responses::{self, TestedLogs, labelled},
};
use crate::check::{
    accuracy_text::test06_passed,
    finding::{Findings, Severity},
    rules,
    run_log::RunLog,
};

/// Up to these latencies in nanoseconds, a stream test may deviate more from its reference.
const SHORT_SINGLE_STREAM: f64 = 200_000.0;
const SHORT_MULTI_STREAM: f64 = 1_600_000.0;

/// The logs of a scenario that can be read.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScenarioLogs<'a> {
    pub(super) performance: Option<&'a RunLog>,
    pub(super) accuracy: Option<&'a RunLog>,
}

/// A compliance test and its directory.
#[derive(Debug, Clone, Copy)]
struct TestPlace<'a> {
    test: &'a str,
    directory: &'a str,
}

/// Checks the compliance tests of a scenario. The open division has none.
pub(super) fn check(
    case: &Case<'_>,
    scenario: ScenarioLogs<'_>,
    runs: &mut Vec<RunIdentity>,
    findings: &mut Findings,
) {
    if !case.bound() {
        return;
    }
    for (test, directory) in case.rules.tests.iter().zip(directories(case)) {
        let place = TestPlace {
            test,
            directory: &directory,
        };
        if !case.context.tree.is_directory(&directory) {
            let fix = format!("run {test} and add its directory");
            findings.error(rules::TESTS, &directory, "is missing", fix);
            continue;
        }
        if !matches!(test.as_str(), "TEST01" | "TEST04" | "TEST05") {
            verdict(case, place, findings);
            continue;
        }
        let run = format!("{directory}/performance/run_1");
        let log = read_log(case, &run, findings);
        if let Some(log) = &log {
            performance::check(case, &run, log, Purpose::Test(test), findings);
            summary::check(case, &run, log, findings);
            runs.push(RunIdentity::of(case, &run, log, Role::Test(test.clone())));
            if let Some(reference) = scenario.performance {
                let path = format!("{run}/mlperf_log_detail.txt");
                agreement::check_test((reference, log), &path, findings);
            }
        }
        performance::files(case, &run, Severity::Error, findings);
        let logs = scenario.performance.zip(log.as_ref());
        verify_performance(case, place, logs, findings);
        if test == "TEST01" {
            let logs = TestedLogs {
                test: log.as_ref(),
                accuracy: scenario.accuracy,
            };
            test_responses::check(case, &directory, logs, findings);
        }
    }
}

/// Returns the directories of the scenario's compliance tests, in the order of the rules.
pub(super) fn directories(case: &Case<'_>) -> impl Iterator<Item = String> {
    let base = match case.classic() {
        true => case.job.place.below("compliance"),
        false => case.results.to_owned(),
    };
    case.rules.tests.iter().map(move |test| format!("{base}/{test}"))
}

/// Checks the verdict of a test that has no performance score.
///
/// These tests of language and recommendation models evaluate responses that a submission tree does not contain.
fn verdict(case: &Case<'_>, TestPlace { test, directory }: TestPlace<'_>, findings: &mut Findings) {
    let name = match test {
        "TEST09" => "verify_output_len.txt",
        _ => "verify_accuracy.txt",
    };
    let path = format!("{directory}/{name}");
    let Some(lines) = accuracy::lines(case, &path, findings) else {
        return;
    };
    let passed = match test {
        "TEST06" => test06_passed(lines.iter().map(String::as_str)),
        _ => lines.iter().any(|line| line.trim() == "TEST PASS"),
    };
    if !passed {
        let text = format!("does not say that {test} passed");
        findings.error(rules::TEST_ACCURACY, &path, text, "repeat the test");
    }
}

/// Checks that the test's verdict file says that it passed, with the scores from the logs.
fn verify_performance(
    case: &Case<'_>,
    TestPlace { test, directory }: TestPlace<'_>,
    logs: Option<(&RunLog, &RunLog)>,
    findings: &mut Findings,
) {
    let path = format!("{directory}/verify_performance.txt");
    let fix = "run the test's verification again and put its own output there";
    let Some(lines) = accuracy::lines(case, &path, findings) else {
        return;
    };
    if !lines.iter().any(|line| line.trim() == "TEST PASS") {
        findings.error(rules::TEST_PERFORMANCE, &path, "does not say TEST PASS", fix);
    }
    let Some(audit) = case.context.round.audits.get(test) else {
        return;
    };
    let scores = logs.and_then(|(reference, run)| {
        let reference_score = score(audit, reference)?;
        Some((
            reference_score,
            score(audit, run)?,
            reference.text("effective_scenario")?,
        ))
    });
    let Some((reference, found, scenario)) = scores else {
        let text = "the verdict cannot be recomputed: a score is missing from the logs";
        return findings.error(rules::TEST_PERFORMANCE, &path, text, "repeat the test");
    };
    // The summary has fewer digits than the detail log: Server's rate has two decimal places.
    let rounding = match audit.scores {
        ScoreSource::Summary if scenario == Scenario::Server.as_str() => 0.0051,
        _ => 0.0,
    };
    for (label, expected) in [("reference score", reference), ("test score", found)] {
        let written = lines.iter().find_map(|line| labelled(line, label));
        let near = (expected.abs() * 1e-4).max(rounding);
        let same = written.is_some_and(|written| (written - expected).abs() <= near);
        if !same {
            let written = written.map_or_else(|| "not given".to_owned(), |written| written.to_string());
            let text = format!("the {label} is {written}, the logs give {expected}");
            findings.error(rules::TEST_PERFORMANCE, &path, text, fix);
        }
    }
    let scenario = scenario.parse().unwrap_or(case.scenario.run());
    if !within(audit, scenario, reference, found) {
        let text = format!("the logs do not pass: reference {reference}, test {found}");
        findings.error(
            rules::TEST_PERFORMANCE,
            &path,
            text,
            "repeat the test, or find out what differs",
        );
    }
}

/// Returns a run's score as the test's script computes it.
fn score(audit: &Audit, log: &RunLog) -> Option<f64> {
    let scenario = log.text("effective_scenario")?.parse::<Scenario>().ok()?;
    let key = match scenario {
        Scenario::SingleStream => "early_stopping_latency_ss",
        Scenario::MultiStream => "early_stopping_latency_ms",
        Scenario::Offline => "result_samples_per_second",
        Scenario::Server => "result_completed_samples_per_sec",
    };
    let value = log
        .number(key)
        .filter(|value| value.is_finite() && *value > 0.0)?;
    let latency = matches!(scenario, Scenario::SingleStream | Scenario::MultiStream);
    let as_rate = latency && audit.latency_as_rate && audit.scores == ScoreSource::Summary;
    Some(if as_rate { 1e9 / value } else { value })
}

/// Returns whether the test's score is within the script's tolerance of the reference score.
fn within(audit: &Audit, scenario: Scenario, reference: f64, found: f64) -> bool {
    let short = match scenario {
        Scenario::SingleStream => reference <= SHORT_SINGLE_STREAM,
        Scenario::MultiStream => reference <= SHORT_MULTI_STREAM,
        _ => false,
    };
    let percent = if short {
        audit.short_latency_tolerance_percent
    } else {
        audit.tolerance_percent
    };
    let tolerance = f64::from(percent) / 100.0;
    let (low, high) = (reference * (1.0 - tolerance), reference * (1.0 + tolerance));
    match audit.bounds {
        Bounds::Both => low < found && found < high,
        Bounds::Inclusive => low <= found && found <= high,
        Bounds::Above => found < high,
        Bounds::Worse if audit.rates.contains(&scenario) => found > low,
        Bounds::Worse => found < high,
    }
}
