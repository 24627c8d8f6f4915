//! The power metric as the official checkers compute it: watts for Offline and Server, energy per query for the streams.

use std::borrow::Cow;

use regatta_catalogue::round::{OfficialCheck, SubmittedScenario, Trait};
use regatta_types::Scenario;

use super::{
    Context,
    path_fault::PathFault,
    python::{Number, Raised},
};
use crate::check::{
    MULTISTREAM_SAMPLES,
    power::{
        self, PowerOutcome,
        samples::{self, Reading, RunWindow},
    },
    run_log::RunLog,
};

/// Returns the power metric of the run in `directory`, whose detail log is `log`. Returns `None` if its window has no samples.
pub(super) fn metric(
    context: &Context<'_>,
    directory: &str,
    log: &RunLog,
    scenario: SubmittedScenario,
) -> Result<Option<f64>, Raised> {
    let checker = context.checker;
    let stamp = |key: &str| {
        log.text(key)
            .ok_or_else(|| Raised::new(format!("{key} is missing from the log")))
    };
    let window = RunWindow {
        begin: stamp("power_begin")?,
        end: stamp("power_end")?,
    };
    let reading = Reading {
        every_line: checker.has(Trait::PowerLogEveryLine),
        zeros: checker.has(Trait::PowerLogZeros),
        factor: false,
    };
    let path = format!("{directory}/spl.txt");
    let Some(mean) = samples::mean(context.tree, &path, window, reading)
        .map_err(|failure| Raised::new(failure.to_string()))?
    else {
        return Ok(None);
    };
    if matches!(scenario.run(), Scenario::Offline | Scenario::Server) {
        return Ok(Some(mean.watts));
    }
    let queries = Number::of(log.value("result_query_count"))?.value().trunc();
    if queries == 0.0 {
        return Err(Raised::new("division by zero: result_query_count is 0"));
    }
    let scale = if checker.has(Trait::PowerInJoules) {
        1.0
    } else {
        1000.0
    };
    let inferred =
        scenario == SubmittedScenario::MultiStream && log.text("effective_scenario") == Some("SingleStream");
    // This is the official order of operations, so that the last digit agrees.
    let mut energy = mean.watts * mean.seconds;
    if inferred {
        energy *= MULTISTREAM_SAMPLES;
    }
    if !checker.has(Trait::PowerInJoules) {
        energy *= scale;
    }
    Ok(Some(energy / queries))
}

/// Returns the failed checks of the Power working group's checker for the session in `directory`.
///
/// The list is empty if this official checker does not run that one.
pub(super) fn faults(context: &Context<'_>, directory: &str) -> Vec<PathFault> {
    let rules = context.round.power.as_ref();
    let Some(rules) = rules.filter(|_| context.checker.looks_at(OfficialCheck::PowerChecker)) else {
        return Vec::new();
    };
    let mut rules = Cow::Borrowed(rules);
    if context.checker.has(Trait::PowerLogInLocalTime) {
        rules.to_mut().log_in_local_time = true;
    }
    let report = power::check(context.tree, directory, &rules);
    let failed = report.checks.into_iter().filter_map(|check| match check.outcome {
        PowerOutcome::Failed(reason) => Some(PathFault::new(directory, format!("{}: {reason}", check.name))),
        _ => None,
    });
    failed.collect()
}
