//! Compliance tests: their runs judged as runs, their verdicts recomputed from the logs instead of believed.

use regatta_rules::{
    Scenario,
    procedures::{Audit, Bounds, ScoreSource},
};

use super::{
    accuracy, agreement, own_run,
    performance::{self, Purpose},
    scenario::{self, Case},
};
use crate::check::{
    MULTISTREAM_SAMPLES,
    accuracy_text::{self, test06_passed},
    finding::{Findings, Severity},
    rules,
    run_log::RunLog,
};

/// Streams with a reference below these many nanoseconds may differ more.
const SHORT_SINGLE_STREAM: f64 = 200_000.0;
const SHORT_MULTI_STREAM: f64 = 1_600_000.0;

/// Judges the tests of a scenario; the open division has none.
pub(super) fn check(case: &Case<'_>, reference: Option<&RunLog>, findings: &mut Findings) {
    if !case.bound() {
        return;
    }
    let base = if case.classic() {
        case.job.place.below("compliance")
    } else {
        case.results.to_owned()
    };
    for test in &case.rules.tests {
        let directory = format!("{base}/{test}");
        if !case.context.tree.is_directory(&directory) {
            let mend = format!("run {test} and add its directory");
            findings.error(rules::TESTS, &directory, "is missing", mend);
            continue;
        }
        if !matches!(test.as_str(), "TEST01" | "TEST04" | "TEST05") {
            verdict(case, (&directory, test), findings);
            continue;
        }
        let run = format!("{directory}/performance/run_1");
        let log = scenario::read_log(case, &run, findings);
        if let Some(log) = &log {
            performance::check(case, &run, log, Purpose::Test(test), findings);
            if let Some(reference) = reference {
                let path = format!("{run}/mlperf_log_detail.txt");
                own_run::check(reference, (&path, log), findings);
                agreement::compare((reference, log), &path, Severity::Error, findings);
            }
        }
        performance::files(case, &run, findings);
        verify_performance(case, (&directory, test), reference.zip(log.as_ref()), findings);
        if test == "TEST01" {
            verify_accuracy(case, &directory, log.as_ref(), findings);
        }
    }
}

/// The verdict of a test that verifies no score: of language and recommendation models, by responses that no tree holds.
fn verdict(case: &Case<'_>, (directory, test): (&str, &str), findings: &mut Findings) {
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

/// The test's verdict file says that it passed, with the numbers that its logs give.
fn verify_performance(
    case: &Case<'_>,
    (directory, test): (&str, &str),
    logs: Option<(&RunLog, &RunLog)>,
    findings: &mut Findings,
) {
    let path = format!("{directory}/verify_performance.txt");
    let mend = "run the test's verification again and put its own output there";
    let Some(lines) = accuracy::lines(case, &path, findings) else {
        return;
    };
    if !lines.iter().any(|line| line.trim() == "TEST PASS") {
        findings.error(rules::TEST_PERFORMANCE, &path, "does not say TEST PASS", mend);
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
    // The summary gives fewer digits than the log that is recomputed from: two after the point of Server's rate.
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
            findings.error(rules::TEST_PERFORMANCE, &path, text, mend);
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

/// The number behind a label, in whatever case.
fn labelled(line: &str, label: &str) -> Option<f64> {
    let (left, right) = line.split_once('=')?;
    left.trim()
        .eq_ignore_ascii_case(label)
        .then(|| right.trim().parse().ok())?
}

/// A run's score as the test's script takes it.
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

/// Whether the test's score is as close to the reference's as its script asks for.
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

/// TEST01's comparison of responses, or the two accuracies that stand in for it.
fn verify_accuracy(case: &Case<'_>, directory: &str, log: Option<&RunLog>, findings: &mut Findings) {
    let path = format!("{directory}/verify_accuracy.txt");
    let Some(lines) = accuracy::lines(case, &path, findings) else {
        return;
    };
    let passed = lines.iter().any(|line| line.trim() == "TEST PASS");
    counters(&path, &lines, passed, findings);
    if let Some(log) = log {
        compared(case, &path, &lines, log, findings);
    }
    let base = format!("{directory}/accuracy");
    for name in ["mlperf_log_accuracy.json", "accuracy.txt"] {
        let file = format!("{base}/{name}");
        // The new layout's official truncation leaves a passed TEST01 without its accuracy files.
        if !case.context.tree.is_file(&file) && (case.classic() || !passed) {
            findings.error(
                rules::TEST_ACCURACY,
                &file,
                "is missing",
                "add TEST01's accuracy log and hash",
            );
        }
    }
    let log = format!("{base}/mlperf_log_accuracy.json");
    if case.context.tree.is_file(&log) {
        accuracy::truncated(case, &log, findings);
    }
    if !passed {
        fallback(case, &base, findings);
    }
}

/// The counters that the script prints agree with its verdict.
fn counters(path: &str, lines: &[String], passed: bool, findings: &mut Findings) {
    let count = |label: &str| lines.iter().find_map(|line| labelled(line, label));
    let compared = count("num_perf_log_entries");
    if compared.is_none() {
        let text = "the script's counters are missing";
        let mend = "run TEST01's verification again and put its own output there";
        findings.error(rules::TEST_ACCURACY, path, text, mend);
    }
    let mismatches = count("num_perf_log_data_mismatch").unwrap_or(0.0);
    if passed && (mismatches > 0.0 || compared == Some(0.0)) {
        let text = format!(
            "says TEST PASS with {mismatches} mismatches of {}",
            compared.unwrap_or(0.0)
        );
        findings.error(
            rules::TEST_ACCURACY,
            path,
            text,
            "run TEST01's verification again",
        );
    }
}

/// The script compared the whole accuracy run, and no more responses than the test's run logged.
fn compared(case: &Case<'_>, path: &str, lines: &[String], log: &RunLog, findings: &mut Findings) {
    let mend = "run TEST01's verification again and put its own output there";
    let count = |label: &str| {
        let mut lines = (1..).zip(lines);
        lines.find_map(|(line, text)| Some((line, labelled(text, label)?)))
    };
    let dataset = case.rules.dataset_samples_in(case.scenario);
    // MultiStream fills its last query up.
    if let Some(((line, found), expected)) = count("num_acc_log_entries").zip(dataset)
        && !(expected as f64..expected as f64 + MULTISTREAM_SAMPLES).contains(&found)
    {
        let text = format!("num_acc_log_entries is {found}, the data set has {expected} samples");
        findings.error(rules::TEST_ACCURACY, (path, Some(line)), text, mend);
    }
    let samples = ["generated_query_count", "generated_samples_per_query"].map(|key| log.number(key));
    if let (Some((line, found)), [Some(queries), Some(each)]) = (count("num_perf_log_entries"), samples)
        && found > queries * each
    {
        let text = format!(
            "num_perf_log_entries is {found}, the run had {} samples",
            queries * each
        );
        findings.error(rules::TEST_ACCURACY, (path, Some(line)), text, mend);
    }
}

fn fallback(case: &Case<'_>, base: &str, findings: &mut Findings) {
    let forms = case.context.round.submission.accuracy_forms;
    let mut read = |name: &str| {
        let path = format!("{base}/{name}");
        accuracy::lines(case, &path, findings)
    };
    let (baseline, compliance) = (read("baseline_accuracy.txt"), read("compliance_accuracy.txt"));
    let (Some(baseline), Some(compliance)) = (baseline, compliance) else {
        return;
    };
    for bound in case.rules.accuracy_in(Some(case.scenario)) {
        let last = |lines: &[String]| {
            let mut texts = lines
                .iter()
                .rev()
                .filter_map(|line| accuracy_text::metric(&bound.metric, forms, line));
            texts.next()?.parse::<f64>().ok().filter(|value| *value > 0.0)
        };
        let values = last(&baseline).zip(last(&compliance));
        let most = case.rules.delta_percent(&case.job.benchmark, &bound.metric);
        let close = values.is_some_and(|(a, b)| (1.0 - a / b).abs() * 100.0 <= most);
        if !close {
            let text = match values {
                Some((a, b)) => format!("{} is {a} and {b}, more than {most} % apart", bound.metric),
                None => format!("{} is not given in both files", bound.metric),
            };
            let mend = "repeat TEST01, or find out what differs between the two runs";
            findings.error(rules::TEST_ACCURACY, base, text, mend);
        }
    }
}
