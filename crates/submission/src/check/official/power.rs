//! The power metric as the official checkers compute it: watts for Offline and Server, energy per query otherwise.

use regatta_rules::{Scenario, round::Trait};

use super::{
    Context,
    python::{Number, Raised},
};
use crate::check::{
    power_log::{self, Reading},
    run_log::RunLog,
};

/// Samples of a MultiStream query.
const MULTISTREAM_SAMPLES: f64 = 8.0;

/// The power metric of the run in `directory`, whose detail log is `log`; `None` without samples in its window.
pub(super) fn metric(
    context: &Context<'_>,
    directory: &str,
    log: &RunLog,
    scenario: Scenario,
) -> Result<Option<f64>, Raised> {
    let checker = context.checker;
    let stamp = |key: &str| {
        log.text(key)
            .ok_or_else(|| Raised::new(format!("{key} is missing from the log")))
    };
    let window = (stamp("power_begin")?, stamp("power_end")?);
    let reading = Reading {
        every_line: checker.has(Trait::PowerLogEveryLine),
        zeros: checker.has(Trait::PowerLogZeros),
    };
    let path = format!("{directory}/spl.txt");
    let Some(mean) = power_log::mean(context.tree, &path, window, reading).map_err(Raised::new)? else {
        return Ok(None);
    };
    if matches!(scenario, Scenario::Offline | Scenario::Server) {
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
        scenario == Scenario::MultiStream && log.text("effective_scenario") == Some("SingleStream");
    // In the official order of operations, so that the last digit agrees.
    let mut energy = mean.watts * mean.seconds;
    if inferred {
        energy *= MULTISTREAM_SAMPLES;
    }
    if !checker.has(Trait::PowerInJoules) {
        energy *= scale;
    }
    Ok(Some(energy / queries))
}
