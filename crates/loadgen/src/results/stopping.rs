//! The early stopping paragraph of the summary, and the evaluation of its condition.

use regatta_mllog::format::fixed;
use regatta_types::Scenario;

use super::{
    Latencies,
    early_stopping::{fewest_queries, passing_queries, slow_queries},
};
use crate::effective::EffectiveSettings;

/// The result of early stopping.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Stopping {
    pub(super) met: bool,
    /// The paragraph, lines separated by `\n`.
    pub(super) text: String,
    /// Estimate at the target percentile (SingleStream), ns.
    pub(super) estimate_ss: Option<i64>,
    /// Estimate for MultiStream, ns.
    pub(super) estimate_ms: Option<i64>,
}

/// The percentile at which a SingleStream run may replace a MultiStream one.
const MULTI_STREAM_PERCENTILE: f64 = 0.99;

impl Stopping {
    /// Evaluates a run. `samples` and `queries` are the relevant distributions; for benchmarks with token latencies they are those of
    /// tokens. `bound_ns` is Server's latency bound.
    pub(super) fn judge(
        settings: &EffectiveSettings,
        issued: u64,
        samples: &Latencies,
        queries: &Latencies,
        bound_ns: i64,
    ) -> Self {
        let fraction = settings.target_latency_percentile;
        match settings.scenario {
            Scenario::SingleStream => Self::single_stream(fraction, issued, samples),
            Scenario::MultiStream => match estimate(fraction, issued, queries) {
                Ok(Estimate {
                    paragraph: text,
                    latency_ns: latency,
                }) => Self {
                    met: true,
                    text,
                    estimate_ms: Some(latency),
                    ..Self::default()
                },
                Err(too_few) => Self {
                    text: too_few.to_string(),
                    ..Self::default()
                },
            },
            Scenario::Server => Self::server(fraction, issued, samples.above(bound_ns)),
            Scenario::Offline => Self {
                met: true,
                ..Self::default()
            },
        }
    }

    fn single_stream(fraction: f64, issued: u64, samples: &Latencies) -> Self {
        let (mut text, latency) = match estimate(fraction, issued, samples) {
            Ok(estimate) => (estimate.paragraph, estimate.latency_ns),
            Err(too_few) => {
                return Self {
                    text: too_few.to_string(),
                    ..Self::default()
                };
            }
        };
        let percentile = fixed(MULTI_STREAM_PERCENTILE * 100.0, 1);
        let estimate_ms = slow_queries(issued, MULTI_STREAM_PERCENTILE).map(|slow| samples.at(issued - slow));
        text.push_str(&match estimate_ms {
            Some(latency) => format!("\n * Early stopping {percentile}th percentile estimate: {latency}"),
            None => format!(
                "\n * Not enough queries processed for {percentile}th percentile\n early stopping estimate (would \
                 need to process at\n least {} total queries).",
                fewest_queries(MULTI_STREAM_PERCENTILE)
            ),
        });
        Self {
            met: true,
            text,
            estimate_ss: Some(latency),
            estimate_ms,
        }
    }

    fn server(fraction: f64, issued: u64, slow: u64) -> Self {
        let needed = passing_queries(slow, fraction) + slow;
        let met = issued >= needed;
        let text = if met {
            " * Run successful.".to_owned()
        } else {
            format!(
                " * Run unsuccessful.\n * Processed {issued} queries.\n * Would need to run at least {} more \
                 queries,\n with the run being successful if every additional\n query were under latency.",
                needed - issued
            )
        };
        Self {
            met,
            text,
            ..Self::default()
        }
    }
}

/// The estimate of a percentile.
struct Estimate {
    /// The paragraph of the summary.
    paragraph: String,
    /// The latency in nanoseconds.
    latency_ns: i64,
}

/// The error for a run that is too short for an estimate. Its text is the paragraph of the summary.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error(
    " * Only processed {issued} queries.\n * Need to process at least {fewest} queries for early stopping."
)]
struct TooFewQueries {
    issued: u64,
    fewest: u64,
}

/// Returns the estimate of the percentile `fraction`.
fn estimate(fraction: f64, issued: u64, latencies: &Latencies) -> Result<Estimate, TooFewQueries> {
    let fewest = fewest_queries(fraction);
    let Some(slow) = slow_queries(issued, fraction) else {
        return Err(TooFewQueries { issued, fewest });
    };
    let latency = latencies.at(issued - slow);
    let text = format!(
        " * Processed at least {fewest} queries ({issued}).\n * Would discard {} highest latency queries.\n * Early \
         stopping {}th percentile estimate: {latency}",
        slow - 1,
        fixed(fraction * 100.0, 1)
    );
    Ok(Estimate {
        paragraph: text,
        latency_ns: latency,
    })
}
