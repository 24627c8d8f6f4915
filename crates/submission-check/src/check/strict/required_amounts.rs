//! Checks the amounts that a round requires of a performance run: samples, queries, duration, latencies.

use regatta_types::Scenario;

use super::logged_run::LoggedRun;
use crate::check::{
    finding::{Findings, Rule},
    rules,
};

/// Checks samples, queries and the requested duration.
pub(super) fn counts(run: &LoggedRun<'_>, findings: &mut Findings) {
    let rules_of = run.case.rules;
    let key = "effective_performance_sample_count";
    let fix = "raise performance_sample_count";
    at_least(
        run,
        findings,
        rules::SAMPLES,
        key,
        rules_of.performance_samples,
        fix,
    );
    // LoadGen cannot load more samples than the library has.
    let library = "qsl_reported_total_count";
    if run.log.number(key) > run.log.number(library) {
        at_least(
            run,
            findings,
            rules::SAMPLES,
            library,
            rules_of.performance_samples,
            "run with the complete data set",
        );
    }
    if !rules_of.any_duration {
        let needed = run.case.context.round.submission.min_duration_ms;
        let fix = "set min_duration to 600000 in user.conf";
        at_least(
            run,
            findings,
            rules::DURATION,
            "effective_min_duration_ms",
            needed,
            fix,
        );
    }
    if run.log.text("effective_scenario") != Some("Offline") {
        return;
    }
    if let Some(needed) = rules_of.offline_samples_per_query {
        let fix = "raise min_query_count or target_qps";
        let key = "effective_samples_per_query";
        if run.case.job.place.division == "open" {
            if run.log.number(key).is_some_and(|found| found < needed as f64) {
                let text = format!("{key} is {}, closed requires {needed}", run.found(key));
                let line = run.log.line(key);
                findings.warning(rules::OFFLINE_SAMPLES, (run.path, line), text, fix);
            }
        } else {
            at_least(run, findings, rules::OFFLINE_SAMPLES, key, needed, fix);
        }
    }
    if let Some(&needed) = rules_of.min_queries.get(&Scenario::Offline) {
        at_least(
            run,
            findings,
            rules::QUERIES,
            "effective_min_query_count",
            needed,
            "raise min_query_count",
        );
    }
}

/// Checks early stopping, and Server's bound of latency.
pub(super) fn stopping(run: &LoggedRun<'_>, findings: &mut Findings) {
    if matches!(run.log.text("effective_scenario"), None | Some("Offline")) {
        return;
    }
    const KEY: &str = "early_stopping_met";
    if run.log.flag(KEY) != Some(true) {
        let text = format!("{KEY} is {}", run.found(KEY));
        run.error_with_fix(
            findings,
            rules::EARLY_STOPPING,
            KEY,
            text,
            "run longer, for more queries",
        );
    }
    let bound = run.case.rules.server_latency_ns;
    if let (Some(bound), Some("Server")) = (bound, run.log.text("effective_scenario")) {
        const KEY: &str = "effective_target_latency_ns";
        if !run.log.number(KEY).is_some_and(|found| found <= bound as f64) {
            let text = format!("{KEY} is {}, at most {bound} is allowed", run.found(KEY));
            run.error_with_fix(
                findings,
                rules::LATENCY,
                KEY,
                text,
                "use the round's target_latency",
            );
        }
    }
}

/// Checks that token latencies are recorded and within the limits of the directory's scenario.
pub(super) fn tokens(run: &LoggedRun<'_>, findings: &mut Findings) {
    const KEY: &str = "requested_use_token_latencies";
    let rules_of = run.case.rules;
    if rules_of.token_latencies && run.log.flag(KEY) != Some(true) {
        let text = format!("{KEY} is {}", run.found(KEY));
        return run.error_with_fix(findings, rules::TOKENS, KEY, text, "set use_token_latencies to 1");
    }
    let Some(limits) = rules_of.token_limits.get(&run.case.scenario) else {
        return;
    };
    for (key, limit) in [
        (
            "result_first_token_99.00_percentile_latency_ns",
            limits.first_token_ns,
        ),
        (
            "result_time_per_output_token_99.00_percentile_ns",
            limits.per_token_ns,
        ),
    ] {
        if !run.log.number(key).is_some_and(|found| found < limit as f64) {
            let text = format!("{key} is {}, it must be below {limit}", run.found(key));
            run.error_with_fix(
                findings,
                rules::LATENCY,
                key,
                text,
                "request fewer queries per second",
            );
        }
    }
}

/// Reports an error unless the value of `key` is a number of at least `needed`.
fn at_least(run: &LoggedRun<'_>, findings: &mut Findings, rule: Rule, key: &str, needed: u64, fix: &str) {
    if !run.log.number(key).is_some_and(|found| found >= needed as f64) {
        let text = format!("{key} is {}, at least {needed} is needed", run.found(key));
        run.error_with_fix(findings, rule, key, text, fix);
    }
}
