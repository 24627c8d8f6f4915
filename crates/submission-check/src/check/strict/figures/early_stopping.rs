//! The early-stopping results of a run, recomputed from its number of queries.

use regatta_loadgen::results::early_stopping::{fewest_queries, passing_queries, slow_queries};
use regatta_types::Scenario;

use super::{super::logged_run::LoggedRun, Sizes};
use crate::check::{finding::Findings, rules};

/// The percentile at which a MultiStream result is inferred from a SingleStream run.
const INFERRED: f64 = 0.99;

/// Returns whether the early-stopping condition is met, or `None` if the log does not determine it.
pub(super) fn is_met(run: &LoggedRun<'_>, sizes: &Sizes) -> Option<bool> {
    let share = target(run)?;
    match sizes.scenario {
        Scenario::Offline => Some(true),
        Scenario::SingleStream | Scenario::MultiStream => Some(sizes.queries >= fewest_queries(share)),
        Scenario::Server => {
            // For token latencies, the log does not say how many exceeded their bounds.
            let tokens = run.log.flag("requested_use_token_latencies") == Some(true);
            let late = run.count("result_overlatency_query_count")?;
            let few = late <= sizes.queries && !tokens;
            few.then(|| sizes.queries >= passing_queries(late, share).saturating_add(late))
        }
    }
}

fn target(run: &LoggedRun<'_>) -> Option<f64> {
    let share = run.number("effective_target_latency_percentile")?;
    // The rules use no percentile below 0.5. The upper limit bounds the search.
    (0.5..0.99999).contains(&share).then_some(share)
}

/// Checks the numbers in the early-stopping paragraph.
pub(super) fn check(run: &LoggedRun<'_>, sizes: &Sizes, findings: &mut Findings) {
    let tokens = run.log.flag("requested_use_token_latencies") == Some(true);
    let keys: &[_] = match tokens {
        // For later tokens, the log has no estimate outside the paragraph.
        true => &["early_stopping_ttft_result"],
        false => &["early_stopping_result"],
    };
    for key in keys {
        let (Some(text), Some(expected)) = (run.log.text(key), expected(run, sizes)) else {
            continue;
        };
        let found = numbers(text);
        if found != expected {
            let text = format!("{key} has the numbers {found:?}, the run's other figures make {expected:?}");
            run.error(findings, rules::FIGURES, key, text);
        }
    }
}

/// Returns the numbers that the paragraph must have, in its order and without percentages.
fn expected(run: &LoggedRun<'_>, sizes: &Sizes) -> Option<Vec<i128>> {
    let share = target(run)?;
    let queries = sizes.queries;
    let key = match sizes.scenario {
        Scenario::SingleStream => "early_stopping_latency_ss",
        Scenario::MultiStream => "early_stopping_latency_ms",
        Scenario::Server | Scenario::Offline => return None,
    };
    let fewest = fewest_queries(share);
    let Some(slow) = slow_queries(queries, share) else {
        return Some(vec![queries.into(), fewest.into()]);
    };
    let mut numbers = vec![
        fewest.into(),
        queries.into(),
        (slow - 1).into(),
        run.integer(key)?,
    ];
    if sizes.scenario == Scenario::SingleStream {
        numbers.push(match slow_queries(queries, INFERRED) {
            Some(_) => run.integer("early_stopping_latency_ms")?,
            None => fewest_queries(INFERRED).into(),
        });
    }
    Some(numbers)
}

/// Returns the integers in a text. Percentiles, for example `99.0th`, are not integers.
pub(in super::super) fn numbers(text: &str) -> Vec<i128> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '-'))
        .filter_map(|word| word.trim_end_matches('.').parse().ok())
        .collect()
}
