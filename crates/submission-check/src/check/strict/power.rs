//! Checks the power measurement of a result: its files, its session and its samples. Computes the metric from the run's time
//! window.

use regatta_catalogue::round::{OfficialCheck, Trait};
use regatta_types::Scenario;

use super::{
    case::Case,
    performance,
    read_log::read_hashed_log,
    run_identity::{Role, RunIdentity},
    summary,
};
use crate::check::{
    MULTISTREAM_SAMPLES,
    finding::{Findings, Severity},
    hashed::Hashed,
    power::{
        self, CheckFailure, PowerOutcome, SessionLogs,
        samples::{self, MeanPower, Reading, RunWindow},
    },
    rules,
    run_log::RunLog,
};

const FILES: [&str; 5] = [
    "client.json",
    "client.log",
    "ptd_logs.txt",
    "server.json",
    "server.log",
];
/// The finding about a rehearsal's session.
const SIMULATED: &str = "the session was made with a simulated PTDaemon, which measures nothing";
/// Name prefixes of the files that describe the meter.
const DESCRIPTIONS: [&str; 2] = ["analyzer_table.", "power_settings."];

/// Checks the power measurement. Returns the power metric and its units, or `None` if the scenario has no power measurement.
pub(super) fn check(
    case: &Case<'_>,
    performance: Option<&RunLog>,
    runs: &mut Vec<RunIdentity>,
    findings: &mut Findings,
) -> Option<(Option<f64>, &'static str)> {
    if !case.has_power() {
        return None;
    }
    let base = format!("{}/performance", case.results);
    let directory = format!("{base}/power");
    let found = case.context.tree.files(&directory).unwrap_or_default();
    for name in FILES {
        if !found.contains(&name) {
            let path = format!("{directory}/{name}");
            findings.error(
                rules::POWER,
                &path,
                "is missing",
                "add the power client's output as it is",
            );
        }
    }
    for name in found {
        if !FILES.contains(&name) {
            let path = format!("{directory}/{name}");
            findings.error(rules::FILE_SET, &path, "does not belong here", "remove it");
        }
    }
    performance::files(case, &format!("{base}/ranging"), Severity::Error, findings);
    for run in ["run_1", "ranging"] {
        let path = format!("{base}/{run}/spl.txt");
        if !case.context.tree.is_file(&path) {
            findings.error(
                rules::POWER,
                &path,
                "is missing",
                "add PTDaemon's samples of this run",
            );
        }
    }
    described(case, findings);
    let ranging_directory = format!("{base}/ranging");
    let ranging = read_hashed_log(case, &ranging_directory, findings);
    if let Some(log) = &ranging {
        runs.push(RunIdentity::of(case, &ranging_directory, log, Role::Ranging));
        summary::check(case, &ranging_directory, log, findings);
    }
    let run = format!("{base}/run_1");
    let measured = performance.map(|log| mean_power(case, &run, log, findings));
    let (mean, samples_sha1) = measured.unwrap_or_default();
    let known = SessionLogs {
        ranging: ranging.as_ref(),
        run: performance,
        samples_sha1: samples_sha1.as_deref(),
    };
    session(case, &base, known, findings);
    let metric = performance
        .zip(mean)
        .and_then(|(log, mean)| metric(case, log, mean));
    let units = match case.scenario.run() {
        Scenario::Offline | Scenario::Server => "Watts",
        _ if joules(case) => "Joules",
        _ => "millijoules",
    };
    Some((metric, units))
}

/// Checks that the operator describes the meter and its settings.
///
/// The files are beside the measurements or up to three directories above them.
fn described(case: &Case<'_>, findings: &mut Findings) {
    let directory = match case.classic() {
        true => case.job.place.below("measurements"),
        false => case.results.to_owned(),
    };
    let levels: Vec<_> = std::iter::successors(Some(directory.as_str()), |level| {
        level.rsplit_once('/').map(|(above, _)| above)
    })
    .take(4)
    .collect();
    let tree = case.context.tree;
    let has_contents = |start: &str| {
        levels.iter().any(|level| {
            let names = tree.files(level).unwrap_or_default();
            let mut names = names.iter().filter(|name| name.starts_with(start));
            names.any(|name| tree.size(&format!("{level}/{name}")) > Some(0))
        })
    };
    let severity = case.context.since(OfficialCheck::PowerMeasurementFiles);
    for start in DESCRIPTIONS {
        if !has_contents(start) {
            let text = format!("{start}* is missing, or empty");
            let fix = "describe the meter and its settings there";
            findings.add(severity, rules::POWER, &directory, text, fix);
        }
    }
}

/// Runs the Power working group's own checks, and reports the findings that those overlook.
fn session(case: &Case<'_>, base: &str, known: SessionLogs<'_>, findings: &mut Findings) {
    let Some(rules_of) = &case.context.round.power else {
        return;
    };
    if power::is_simulated(case.context.tree, base) {
        let path = format!("{base}/power/server.json");
        let fix = "measure with a power meter";
        findings.error(rules::POWER_SESSION, &path, SIMULATED, fix);
    }
    if power::has_own_programs(case.context.tree, base) {
        let path = format!("{base}/power/server.json");
        let fix = "measure with the official client and server of this round";
        findings.error(rules::POWER_SESSION, &path, power::OWN_PROGRAMS, fix);
    }
    let (report, overlooked) = power::review(case.context.tree, base, rules_of, known);
    for check in report.checks {
        let (severity, reason) = match check.outcome {
            PowerOutcome::Passed => continue,
            PowerOutcome::Warned(reason) => (Severity::Warning, reason),
            PowerOutcome::Failed(reason) => (Severity::Error, reason),
        };
        let path = format!("{base}/power{}", document(check.name));
        let fix = match severity {
            Severity::Error => "repeat the measurement with the client and server of this round",
            _ => "be ready to explain it in the review",
        };
        findings.add(severity, rules::POWER_SESSION, &path, reason, fix);
    }
    for fault in overlooked {
        let rule = if fault.path.starts_with(&format!("{base}/power/")) {
            rules::POWER_SESSION
        } else {
            rules::POWER
        };
        let fix = "repeat the power measurement; the official checker does not check this";
        findings.error(rule, (fault.path.as_str(), fault.line), fault.text, fix);
    }
}

/// Returns the document that a check reads, or an empty string if it is not a single one.
fn document(check: &str) -> &'static str {
    match check {
        "Check client sources checksum" => "/client.json",
        "Check server sources checksum"
        | "Check PTD commands and replies"
        | "Check PTD configuration"
        | "Check debug is disabled on server-side" => "/server.json",
        "Check errors and warnings from PTD logs" => "/ptd_logs.txt",
        _ => "",
    }
}

/// Returns whether the round states energy in joules.
fn joules(case: &Case<'_>) -> bool {
    let checker = case.context.round.submission.checkers.first();
    checker.is_some_and(|checker| checker.has(Trait::PowerInJoules))
}

/// Returns the mean of the run's samples in its time window, and the SHA-1 of the file with the samples.
fn mean_power(
    case: &Case<'_>,
    directory: &str,
    log: &RunLog,
    findings: &mut Findings,
) -> (Option<MeanPower>, Option<String>) {
    let path = format!("{directory}/spl.txt");
    let Some(window) = RunWindow::of_log(log) else {
        let path = format!("{directory}/mlperf_log_detail.txt");
        findings.error(
            rules::POWER,
            &path,
            "power_begin and power_end are missing",
            "repeat the run",
        );
        return (None, None);
    };
    let reading = Reading {
        every_line: false,
        zeros: false,
        factor: false,
    };
    let fault = |error| CheckFailure::from(format!("{path}: {error}"));
    let read = Hashed::open(case.context.tree, &path)
        .map_err(fault)
        .and_then(|mut file| {
            let mean = samples::mean_of(&mut file, &path, window, reading)?;
            Ok((mean, file.sha1().map_err(fault)?))
        });
    match read {
        // The session's own faults have what is wrong with the samples.
        Ok((mean, sha1)) => (mean, Some(sha1)),
        Err(failure) => {
            findings.error(
                rules::POWER,
                &path,
                failure.to_string(),
                "put PTDaemon's log in its place",
            );
            (None, None)
        }
    }
}

/// Returns watts for scenarios that measure a rate, and energy per query for scenarios that measure a latency.
fn metric(case: &Case<'_>, log: &RunLog, mean: MeanPower) -> Option<f64> {
    if matches!(case.scenario.run(), Scenario::Offline | Scenario::Server) {
        return Some(mean.watts);
    }
    let queries = log
        .number("result_query_count")
        .filter(|queries| *queries > 0.0)?;
    let inferred =
        case.scenario == Scenario::MultiStream && log.text("effective_scenario") == Some("SingleStream");
    let scale = if inferred { MULTISTREAM_SAMPLES } else { 1.0 };
    let unit = if joules(case) { 1.0 } else { 1000.0 };
    Some(mean.watts * mean.seconds * unit * scale / queries)
}
