//! Power beside a result: its files, its session, and the metric from the samples in the run's own window.

use regatta_rules::{Scenario, round::Trait};

use super::{
    performance,
    scenario::{Case, read_log},
};
use crate::check::{
    finding::{Findings, Severity},
    power::{
        self, Logs, Outcome,
        samples::{self, Reading},
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
/// Samples of a MultiStream query.
const MULTISTREAM_SAMPLES: f64 = 8.0;

/// The power metric and its units, where the scenario has power at all.
pub(super) fn check(
    case: &Case<'_>,
    performance: Option<&RunLog>,
    findings: &mut Findings,
) -> Option<(Option<f64>, &'static str)> {
    let base = format!("{}/performance", case.results);
    let directory = format!("{base}/power");
    if !case.context.tree.exists(&directory) {
        return None;
    }
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
    performance::files(case, &format!("{base}/ranging"), findings);
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
    let ranging = read_log(case, &format!("{base}/ranging"), findings);
    let logs = Logs {
        ranging: ranging.as_ref(),
        run: performance,
    };
    session(case, &base, logs, findings);
    if let Some((ranging, run)) = ranging.as_ref().zip(performance)
        && ranging.text("effective_scenario") != run.text("effective_scenario")
    {
        let path = format!("{base}/ranging/mlperf_log_detail.txt");
        let mend = "take both runs from one power measurement";
        findings.error(
            rules::POWER,
            &path,
            "the ranging run is of another scenario",
            mend,
        );
    }
    let metric = performance.and_then(|log| metric(case, &format!("{base}/run_1"), log, findings));
    let units = match case.scenario.run() {
        Scenario::Offline | Scenario::Server => "Watts",
        _ if joules(case) => "Joules",
        _ => "millijoules",
    };
    Some((metric, units))
}

/// The Power working group's own checks, and what they overlook.
fn session(case: &Case<'_>, base: &str, logs: Logs<'_>, findings: &mut Findings) {
    let Some(rules_of) = &case.context.round.power else {
        return;
    };
    let (report, overlooked) = power::review(case.context.tree, base, rules_of, logs);
    for check in report.checks {
        let (severity, reason) = match check.outcome {
            Outcome::Passed => continue,
            Outcome::Warned(reason) => (Severity::Warning, reason),
            Outcome::Failed(reason) => (Severity::Error, reason),
        };
        let path = format!("{base}/power{}", document(check.name));
        let mend = match severity {
            Severity::Error => "repeat the measurement with the client and server of this round",
            _ => "be ready to explain it in the review",
        };
        findings.add(severity, rules::POWER_SESSION, &path, reason, mend);
    }
    for (line, text) in overlooked {
        let path = format!("{base}/power/ptd_logs.txt");
        let mend = "repeat the measurement; the official checker looks no further than its first warning";
        findings.error(rules::POWER_SESSION, (path.as_str(), Some(line)), text, mend);
    }
}

/// The document that a check is about, where it is about one.
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

/// Whether the round gives energy in joules.
fn joules(case: &Case<'_>) -> bool {
    let checker = case.context.round.submission.checkers.first();
    checker.is_some_and(|checker| checker.has(Trait::PowerInJoules))
}

fn metric(case: &Case<'_>, directory: &str, log: &RunLog, findings: &mut Findings) -> Option<f64> {
    let path = format!("{directory}/spl.txt");
    let mend = "synchronise the clocks and repeat the power measurement";
    let Some(window) = log.text("power_begin").zip(log.text("power_end")) else {
        let path = format!("{directory}/mlperf_log_detail.txt");
        findings.error(
            rules::POWER,
            &path,
            "power_begin and power_end are missing",
            "repeat the run",
        );
        return None;
    };
    let reading = Reading {
        every_line: false,
        zeros: false,
        factor: false,
    };
    let mean = match samples::mean(case.context.tree, &path, window, reading) {
        Ok(Some(mean)) => mean,
        Ok(None) => {
            findings.error(rules::POWER, &path, "has no samples in the run's window", mend);
            return None;
        }
        Err(text) => {
            findings.error(rules::POWER, &path, text, "put PTDaemon's own log in its place");
            return None;
        }
    };
    // PTDaemon samples once a second; a window that is half empty was not measured as a whole.
    if (mean.samples as f64) < mean.seconds / 2.0 {
        let text = format!("{} samples in a window of {:.0} s", mean.samples, mean.seconds);
        findings.error(rules::POWER, &path, text, mend);
    }
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
