//! Checks a performance run: of the submission itself or of a compliance test.

use super::{
    case::Case,
    figures, generated, loadgen_build, loadgen_verdict,
    logged_run::{LoggedRun, Purpose},
    prescribed, records, required_amounts, settings, test_settings,
};
use crate::check::{
    finding::{Findings, Severity},
    power::samples::microseconds,
    rules,
    run_log::RunLog,
};

/// The share of the minimum duration that suffices, because the clock may be adjusted during a run.
const CLOCK: f64 = 0.99;

/// Checks the run whose log was read from `directory`.
pub(super) fn check(
    case: &Case<'_>,
    directory: &str,
    log: &RunLog,
    purpose: Purpose<'_>,
    findings: &mut Findings,
) {
    let path = format!("{directory}/mlperf_log_detail.txt");
    let run = LoggedRun {
        case,
        log,
        path: &path,
    };
    log_of(&run, findings);
    duration(&run, findings);
    prescribed::check(&run, findings);
    figures::check(&run, findings);
    loadgen_verdict::validity(&run, findings);
    loadgen_verdict::errors(&run, findings);
    loadgen_verdict::mode(&run, "PerformanceOnly", findings);
    loadgen_verdict::seeds(&run, purpose, findings);
    required_amounts::counts(&run, findings);
    required_amounts::stopping(&run, findings);
    required_amounts::tokens(&run, findings);
    test_settings::check(&run, purpose, findings);
}

/// Checks the log, the prescribed settings, the mode and the seeds of the accuracy run.
pub(super) fn check_accuracy_run(case: &Case<'_>, directory: &str, log: &RunLog, findings: &mut Findings) {
    let path = format!("{directory}/mlperf_log_detail.txt");
    let run = LoggedRun {
        case,
        log,
        path: &path,
    };
    log_of(&run, findings);
    prescribed::check(&run, findings);
    loadgen_verdict::errors(&run, findings);
    loadgen_verdict::mode(&run, "AccuracyOnly", findings);
    loadgen_verdict::seeds(&run, Purpose::Submission, findings);
}

/// Checks the conditions for the log of every run.
fn log_of(run: &LoggedRun<'_>, findings: &mut Findings) {
    records::check(run, findings);
    loadgen_build::check(run, findings);
    if let Some(requested) = settings::requested(run) {
        let before = findings.errors();
        settings::check(run, &requested, findings);
        // Queries can only be recomputed from settings that LoadGen itself derives.
        if findings.errors() == before {
            generated::check(run, &requested, findings);
        }
    }
}

/// Checks the run's minimum duration by the timestamps `power_begin` and `power_end`.
fn duration(run: &LoggedRun<'_>, findings: &mut Findings) {
    const END: &str = "power_end";
    let stamp = |key| run.log.text(key).and_then(microseconds);
    let Some((begin, end)) = stamp("power_begin").zip(stamp(END)) else {
        return;
    };
    let needed = run.case.context.round.submission.min_duration_ms as f64 / 1e3;
    let seconds = (end - begin) as f64 / 1e6;
    // Another check reports an end before the beginning.
    if !run.case.rules.any_duration && (0.0..needed * CLOCK).contains(&seconds) {
        let text = format!("the run lasted {seconds:.1} s, at least {needed} s are needed");
        let fix = "repeat the run at its full length";
        findings.error(rules::DURATION, (run.path, run.log.line(END)), text, fix);
    }
}

/// Checks the files of `run_1`. `surplus` is the severity of a file that does not belong there.
pub(super) fn files(case: &Case<'_>, directory: &str, surplus: Severity, findings: &mut Findings) {
    let Some(found) = case.context.tree.files(directory) else {
        let fix = "add the performance run";
        return findings.error(rules::FILE_SET, directory, "is not a directory", fix);
    };
    if !found.contains(&"mlperf_log_summary.txt") {
        let path = format!("{directory}/mlperf_log_summary.txt");
        findings.error(
            rules::FILE_SET,
            &path,
            "is missing",
            "add LoadGen's summary of this run",
        );
    }
    let power = case.has_power();
    for name in found {
        let known = match name {
            "mlperf_log_summary.txt"
            | "mlperf_log_detail.txt"
            | "mlperf_log_accuracy.json"
            | "mlperf_log_trace.json"
            | "results.json"
            | ".gitkeep" => true,
            "spl.txt" => power,
            _ => false,
        };
        if !known {
            let path = format!("{directory}/{name}");
            findings.add(
                surplus,
                rules::FILE_SET,
                &path,
                "does not belong here",
                "remove it",
            );
        }
    }
}
