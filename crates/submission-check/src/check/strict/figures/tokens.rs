//! Checks rates of tokens against rates of samples and the number of tokens per sample.

use regatta_types::Scenario;

use super::{
    super::logged_run::{LoggedRun, SIX_DIGITS},
    Sizes,
};
use crate::check::{finding::Findings, rules};

/// The allowed relative difference between token counts that are computed from rates with six digits.
const SLACK: f64 = 3.0 * SIX_DIGITS;

/// Checks the token rates.
pub(super) fn check(run: &LoggedRun<'_>, sizes: &Sizes, findings: &mut Findings) {
    let inferred = match sizes.scenario {
        Scenario::Offline => ("result_inferred_tokens_per_second", "result_samples_per_second"),
        _ => (
            "result_inferred_completed_tokens_per_second",
            "result_completed_samples_per_sec",
        ),
    };
    each_sample(run, inferred, findings);
    let counts = counts(run, sizes);
    let Some((first, expected)) = counts.first() else {
        return;
    };
    for (key, tokens) in &counts[1..] {
        if (tokens - expected).abs() > expected * SLACK {
            let text = format!(
                "{key} is {}, which is of {tokens:.0} tokens; {first} is of {expected:.0}",
                run.found(key)
            );
            run.error(findings, rules::FIGURES, key, text);
        }
    }
}

/// Checks that an inferred rate counts the same integer number of tokens for each sample.
fn each_sample(run: &LoggedRun<'_>, (tokens, samples): (&str, &str), findings: &mut Findings) {
    let (Some(rate), Some(samples)) = (run.number(tokens), run.number(samples)) else {
        return;
    };
    let each = rate / samples;
    // The comparison is false for NaN, which a rate of no samples gives.
    let whole = (each - each.round()).abs() <= each * 2.0 * SIX_DIGITS;
    if !whole {
        let text = format!("{tokens} is {rate}, which makes {each:.4} tokens of each sample");
        run.error(findings, rules::FIGURES, tokens, text);
    }
}

/// Returns the number of tokens that follows from each logged rate.
fn counts(run: &LoggedRun<'_>, sizes: &Sizes) -> Vec<(&'static str, f64)> {
    let gaps = (sizes.queries - 1) as f64;
    let in_samples = run
        .number("result_mean_latency_ns")
        .map(|mean| mean * sizes.samples as f64);
    let issued = run
        .number("result_qps_with_loadgen_overhead")
        .map(|rate| gaps / rate);
    let done = match sizes.scenario {
        Scenario::Server => run
            .number("result_completed_samples_per_sec")
            .map(|rate| gaps / rate),
        _ => super::timing::seconds_by_stamps(run),
    };
    [
        ("result_token_throughput", in_samples),
        ("result_token_throughput_with_loadgen_overhead", issued),
        ("result_completed_tokens_per_second", done),
    ]
    .into_iter()
    .filter_map(|(key, time)| Some((key, run.number(key)? * time?)))
    .filter(|(_, tokens)| tokens.is_finite())
    .collect()
}
