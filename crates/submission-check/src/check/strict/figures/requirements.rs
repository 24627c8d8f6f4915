//! LoadGen's requirements for a run, recomputed from its figures, and the verdict that follows from them.

use regatta_mllog::latency_keys::{LISTED_PERCENTILES, LatencyKeys};
use regatta_types::Scenario;

use super::{
    super::logged_run::{LoggedRun, SIX_DIGITS},
    Sizes, early_stopping,
};
use crate::check::{finding::Findings, rules};

const VALIDITY: &str = "result_validity";
const DURATION: &str = "result_min_duration_met";
const QUERIES: &str = "result_min_queries_met";
const CONSTRAINTS: &str = "result_perf_constraints_met";
const STOPPING: &str = "early_stopping_met";
const REASON: &str = "result_invalid_reason";

/// Checks the requirements and the verdict.
pub(super) fn check(run: &LoggedRun<'_>, sizes: &Sizes, findings: &mut Findings) {
    for (key, expected) in [
        (DURATION, duration(run, sizes)),
        (QUERIES, queries(run, sizes)),
        (CONSTRAINTS, constraints(run, sizes)),
        (STOPPING, early_stopping::is_met(run, sizes)),
    ] {
        if let (Some(found), Some(expected)) = (run.log.flag(key), expected)
            && found != expected
        {
            let text = format!("{key} is {found}, by the run's figures it is {expected}");
            run.error(findings, rules::FIGURES, key, text);
        }
    }
    verdict(run, findings);
    late(run, sizes, findings);
}

/// Checks that a VALID run meets all requirements and has no reason for being INVALID.
fn verdict(run: &LoggedRun<'_>, findings: &mut Findings) {
    let flags = [DURATION, QUERIES, CONSTRAINTS, STOPPING];
    let unmet: Vec<_> = flags
        .into_iter()
        .filter(|key| run.log.flag(key) == Some(false))
        .collect();
    let valid = run.log.text(VALIDITY) == Some("VALID");
    if valid && !unmet.is_empty() {
        let text = format!("the run is VALID, and {} is false", unmet.join(", "));
        run.error(findings, rules::FIGURES, VALIDITY, text);
    }
    if valid && run.log.value(REASON).is_some() {
        let text = format!(
            "the run is VALID, and there is a reason why not: {}",
            run.found(REASON)
        );
        run.error(findings, rules::FIGURES, REASON, text);
    }
}

/// Returns whether the minimum duration was met, or `None` if the figures are too coarse.
fn duration(run: &LoggedRun<'_>, sizes: &Sizes) -> Option<bool> {
    let needed = run.number("effective_min_duration_ms")? / 1e3;
    let gaps = (sizes.queries - 1) as f64;
    let longest = run.number("result_max_latency_ns")? / 1e9;
    let (least, most) = match sizes.scenario {
        Scenario::Offline => (longest, longest),
        Scenario::SingleStream => {
            let issued = gaps / run.number("result_qps_with_loadgen_overhead")?;
            (issued * (1.0 - SIX_DIGITS), issued * (1.0 + SIX_DIGITS))
        }
        Scenario::Server => {
            let due = gaps / run.number("result_scheduled_samples_per_sec")?;
            (due * (1.0 - SIX_DIGITS), due * (1.0 + SIX_DIGITS))
        }
        // LoadGen measures until the last query is issued, but the log only has the time of its answer.
        Scenario::MultiStream => {
            let mean = run.number("result_mean_query_latency_ns")? / 1e9;
            (mean * gaps - longest, f64::INFINITY)
        }
    };
    match () {
        () if least >= needed => Some(true),
        () if most < needed => Some(false),
        () => None,
    }
}

fn queries(run: &LoggedRun<'_>, sizes: &Sizes) -> Option<bool> {
    let queries = run.count("effective_min_query_count")?;
    let samples = run.count("effective_min_sample_count")?;
    Some(sizes.queries >= queries && sizes.samples >= samples)
}

/// Returns whether Server's latency percentile is within its bound, by the number of late queries.
fn constraints(run: &LoggedRun<'_>, sizes: &Sizes) -> Option<bool> {
    if sizes.scenario != Scenario::Server {
        return None;
    }
    if run.log.flag("requested_use_token_latencies") == Some(true) {
        return tokens(run);
    }
    let share = run
        .number("effective_target_latency_percentile")
        .filter(|share| (0.0..1.0).contains(share))?;
    let late = run.count("result_overlatency_query_count")?;
    let place = (sizes.queries as f64 * share) as u64;
    Some(place < sizes.queries.saturating_sub(late))
}

fn tokens(run: &LoggedRun<'_>) -> Option<bool> {
    let share = run.number("effective_target_latency_percentile")?;
    let mut listed = LISTED_PERCENTILES.into_iter();
    let target = listed.find(|listed| (listed.fraction - share).abs() < 1e-9)?;
    let within = |percentile: String, bound: &str| Some(run.integer(&percentile)? <= run.integer(bound)?);
    let first = within(
        LatencyKeys::FIRST_TOKENS.percentile(target),
        "requested_server_ttft_latency",
    )?;
    let later = within(
        LatencyKeys::OUTPUT_TOKENS.percentile(target),
        "requested_server_tpot_latency",
    )?;
    Some(first && later)
}

/// Checks that each percentile is on the side of Server's latency bound that the number of late queries implies.
fn late(run: &LoggedRun<'_>, sizes: &Sizes, findings: &mut Findings) {
    const LATE: &str = "result_overlatency_query_count";
    if sizes.scenario != Scenario::Server {
        return;
    }
    let (Some(late), Some(bound)) = (run.count(LATE), run.integer("effective_target_latency_ns")) else {
        return;
    };
    let in_time = sizes.queries.saturating_sub(late);
    let keys = LatencyKeys::SAMPLES;
    let listed = LISTED_PERCENTILES.map(|percentile| {
        let place = (sizes.queries as f64 * percentile.fraction) as u64;
        (place, keys.percentile(percentile))
    });
    let ends = [(0, keys.min.to_owned()), (sizes.queries - 1, keys.max.to_owned())];
    for (place, key) in listed.into_iter().chain(ends) {
        let Some(latency) = run.integer(&key) else {
            continue;
        };
        if (latency <= bound) != (place < in_time) {
            let text = format!("{LATE} is {late} for a bound of {bound} ns, and {key} is {latency}");
            return run.error(findings, rules::FIGURES, LATE, text);
        }
    }
}
