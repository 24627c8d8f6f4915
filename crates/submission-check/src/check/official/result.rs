//! The result of a run: its key in the log, its unit, and results inferred from another scenario's run.

use regatta_catalogue::round::{BenchmarkRules, SubmittedScenario};
use regatta_types::Scenario;

use super::{
    Context,
    python::{Number, Raised},
};
use crate::check::{MULTISTREAM_SAMPLES, run_log::RunLog};

const NANOSECONDS_PER_MILLISECOND: f64 = 1e6;
const MILLISECONDS_PER_SECOND: f64 = 1e3;

/// Returns the result from the log: in the benchmark's unit for the streams, as logged for rates.
pub(super) fn measured(
    context: &Context<'_>,
    rules: &BenchmarkRules,
    log: &RunLog,
    scenario: Scenario,
) -> Result<f64, Raised> {
    let keys = &context.round.submission.result_keys;
    let general = keys
        .get(&scenario)
        .ok_or_else(|| Raised::new(format!("{scenario} has no result key")))?;
    // Both keys are read even if only the second counts: a log without the first one fails.
    let mut value = Number::float(log.value(general))?;
    if let Some(key) = rules.result_keys.get(&scenario) {
        value = Number::float(log.value(key))?;
    }
    Ok(in_unit(rules, scenario, value))
}

/// Converts a latency from nanoseconds to the benchmark's unit. Rates are returned unchanged.
pub(super) fn in_unit(rules: &BenchmarkRules, scenario: Scenario, value: f64) -> f64 {
    // Dividing twice, as the official code does, makes the last digit agree.
    match scenario {
        Scenario::SingleStream | Scenario::MultiStream if rules.latency_in_seconds => {
            value / NANOSECONDS_PER_MILLISECOND / MILLISECONDS_PER_SECOND
        }
        Scenario::SingleStream | Scenario::MultiStream => value / NANOSECONDS_PER_MILLISECOND,
        Scenario::Offline | Scenario::Server => value,
    }
}

/// A result inferred from a run of another scenario (`inference_rules.adoc`, "Inferred results").
#[derive(Debug, Clone, Copy)]
pub(super) struct Inferred {
    pub(super) value: Number,
    /// Whether early stopping gave the estimate that the inference needs.
    pub(super) usable: bool,
}

/// Infers a result for `to` from a run of `from`. Returns `None` if the official checkers have no formula for the pair.
pub(super) fn inferred(
    log: &RunLog,
    from: Scenario,
    to: SubmittedScenario,
) -> Result<Option<Inferred>, Raised> {
    let value = match (from, to) {
        (Scenario::SingleStream, SubmittedScenario::Offline) => {
            Number::of(log.value("result_qps_without_loadgen_overhead"))?
        }
        (Scenario::MultiStream, SubmittedScenario::Offline) => {
            let samples = Number::of(log.value("effective_samples_per_query"))?.value();
            let latency = Number::of(log.value("result_mean_query_latency_ns"))?.value();
            let latency = latency / NANOSECONDS_PER_MILLISECOND;
            if latency == 0.0 {
                return Err(Raised::new("division by zero: result_mean_query_latency_ns is 0"));
            }
            Number::Float(samples * 1000.0 / latency)
        }
        (Scenario::SingleStream, SubmittedScenario::MultiStream) => {
            let estimate = Number::of(log.value("early_stopping_latency_ms"))?.value();
            return Ok(Some(Inferred {
                value: Number::Float(estimate * MULTISTREAM_SAMPLES / NANOSECONDS_PER_MILLISECOND),
                usable: estimate != 0.0,
            }));
        }
        _ => return Ok(None),
    };
    Ok(Some(Inferred { value, usable: true }))
}

/// Returns the unit of the power metric.
pub(super) fn power_unit(scenario: SubmittedScenario, joules: bool) -> &'static str {
    match scenario.run() {
        Scenario::Offline | Scenario::Server => "Watts",
        _ if joules => "Joules",
        _ => "millijoules",
    }
}
