//! The verdict: every condition of validity, with LoadGen's own recommendations.

use regatta_mllog::format::{fixed, general};
use regatta_types::Scenario;

use regatta_mllog::latency_keys::LISTED_PERCENTILES;

use super::{Latencies, NS_PER_S, SeriesResult, stopping::Stopping, to_f64};
use crate::{
    effective::{EffectiveSettings, millis_to_seconds},
    outcome::{Issued, LatencyStats, Metric, Performance},
};

/// The results of a series of queries, with their verdict.
#[derive(Debug, Clone)]
pub struct Results<'a> {
    pub(super) sut_name: &'a str,
    pub(super) settings: &'a EffectiveSettings,
    pub(super) series: &'a SeriesResult,
    pub(super) min_duration_met: bool,
    pub(super) min_queries_met: bool,
    /// LoadGen's advice on constraints that are not met; empty if they are met.
    pub(super) constraints_advice: String,
    pub(super) stopping: StoppingResult,
    faulted: bool,
}

/// Early stopping: of samples, or of tokens when token latencies are measured.
#[derive(Debug, Clone)]
pub(super) enum StoppingResult {
    Samples(Stopping),
    Tokens { first: Stopping, per_token: Stopping },
}

impl StoppingResult {
    pub(super) fn met(&self) -> bool {
        match self {
            Self::Samples(stopping) => stopping.met,
            Self::Tokens { first, per_token } => first.met && per_token.met,
        }
    }

    /// Returns the estimates that LoadGen reports: those of the first tokens replace those of the later tokens.
    pub(super) fn estimates(&self) -> (Option<i64>, Option<i64>) {
        match self {
            Self::Samples(stopping) => (stopping.estimate_ss, stopping.estimate_ms),
            Self::Tokens { first, per_token } => (
                first.estimate_ss.or(per_token.estimate_ss),
                first.estimate_ms.or(per_token.estimate_ms),
            ),
        }
    }
}

impl<'a> Results<'a> {
    /// Evaluates a series.
    #[must_use]
    pub fn new(sut_name: &'a str, settings: &'a EffectiveSettings, series: &'a SeriesResult) -> Self {
        let samples = series.samples.len();
        Self {
            sut_name,
            settings,
            series,
            min_duration_met: lasted_s(settings, series) >= millis_to_seconds(settings.min_duration_ms),
            min_queries_met: series.queries_issued >= settings.min_query_count
                && samples >= settings.min_sample_count,
            constraints_advice: constraints_advice(settings, series),
            stopping: judge_stopping(settings, series),
            faulted: false,
        }
    }

    /// Adds the faults of the measurement; any fault makes it invalid.
    #[must_use]
    pub const fn with_faults(mut self, faults: &[String]) -> Self {
        self.faulted = !faults.is_empty();
        self
    }

    /// Whether every condition is met.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        !self.faulted
            && self.min_duration_met
            && self.min_queries_met
            && self.constraints_met()
            && self.stopping.met()
    }

    /// Whether Server's latency bounds are met. Other scenarios have none.
    #[must_use]
    pub const fn constraints_met(&self) -> bool {
        self.constraints_advice.is_empty()
    }

    /// Returns LoadGen's recommendation about the duration.
    pub(super) const fn duration_advice(&self) -> &'static str {
        match self.settings.scenario {
            Scenario::SingleStream | Scenario::MultiStream => {
                "Decrease the expected latency so the loadgen pre-generates more queries."
            }
            Scenario::Server => "Increase the target QPS so the loadgen pre-generates more queries.",
            Scenario::Offline => {
                "Increase expected QPS so the loadgen pre-generates a larger (coalesced) query."
            }
        }
    }

    /// Returns the latencies that determine the result. MultiStream's are those of queries.
    pub(super) const fn judged_latencies(&self) -> &'a Latencies {
        match self.settings.scenario {
            Scenario::MultiStream => &self.series.queries,
            _ => &self.series.samples,
        }
    }

    /// Returns Server's completed queries per second. The last query starts the interval after it, so it does not count.
    pub(super) fn completed_per_second(&self) -> f64 {
        to_f64(self.series.samples.len().wrapping_sub(1)) / self.series.final_query_done_s
    }

    /// Returns Offline's samples per second.
    pub(super) fn samples_per_second(&self) -> f64 {
        to_f64(self.series.samples.len()) / self.series.max_latency_s
    }

    /// Returns the mean, rounded down, as LoadGen computes it.
    pub(super) fn mean(latencies: &Latencies) -> i64 {
        latencies
            .sum()
            .checked_div(latencies.len().cast_signed())
            .unwrap_or(0)
    }

    /// Returns the results as a value for callers.
    #[must_use]
    pub fn performance(&self) -> Performance {
        let (estimate_ss, estimate_ms) = self.stopping.estimates();
        let latencies = self.judged_latencies();
        Performance {
            issued: Issued {
                queries: self.series.queries_issued,
                samples: self.series.samples.len(),
            },
            metric: self.metric(),
            performance_constraints_met: self.has_constraints().then_some(self.constraints_met()),
            min_duration_met: self.min_duration_met,
            min_queries_met: self.min_queries_met,
            early_stopping_met: self.stopping.met(),
            early_stopping: match &self.stopping {
                StoppingResult::Samples(stopping) => stopping.text.clone(),
                StoppingResult::Tokens { first, per_token } => format!("{}\n{}", first.text, per_token.text),
            },
            early_stopping_latency_ss: estimate_ss,
            early_stopping_latency_ms: estimate_ms,
            latency: LatencyStats {
                min: latencies.min(),
                max: latencies.max(),
                mean: Self::mean(latencies),
                percentiles: LISTED_PERCENTILES
                    .map(|p| (p.fraction, latencies.percentile(p.fraction)))
                    .to_vec(),
            },
        }
    }

    pub(super) fn has_constraints(&self) -> bool {
        self.settings.scenario == Scenario::Server
    }

    fn metric(&self) -> Metric {
        match self.settings.scenario {
            Scenario::SingleStream | Scenario::MultiStream => {
                let fraction = self.settings.target_latency_percentile;
                let latency = self.judged_latencies().percentile(fraction);
                #[expect(clippy::cast_precision_loss, reason = "exact up to 104 days")]
                let value = latency as f64;
                let name = format!("{}th percentile latency (ns)", fixed(fraction * 100.0, 1));
                Metric {
                    name,
                    text: latency.to_string(),
                    value,
                    unit: "ns",
                }
            }
            Scenario::Server => {
                let value = self.completed_per_second();
                let name = "Completed samples per second".to_owned();
                Metric {
                    name,
                    text: fixed(value, 2),
                    value,
                    unit: "queries/s",
                }
            }
            Scenario::Offline => {
                let value = self.samples_per_second();
                let name = "Samples per second".to_owned();
                Metric {
                    name,
                    text: general(value),
                    value,
                    unit: "samples/s",
                }
            }
        }
    }

    /// Returns why the run is not valid, in LoadGen's sentences.
    #[must_use]
    pub fn reasons(&self) -> Vec<String> {
        let mut reasons: Vec<String> = Vec::new();
        if !self.constraints_met() {
            reasons.extend(self.constraints_advice.split("\n * ").map(str::to_owned));
        }
        if !self.min_duration_met {
            reasons.push(self.duration_advice().to_owned());
        }
        if !self.min_queries_met {
            reasons.push("The test exited early, before enough queries were issued.".to_owned());
        }
        if !self.stopping.met() {
            let Performance { early_stopping, .. } = self.performance();
            let lines: Vec<_> = early_stopping
                .split(['\n', '*'])
                .map(str::trim)
                .filter(|part| !part.is_empty())
                .collect();
            reasons.push(format!("Early stopping: {}", lines.join(" ")));
        }
        reasons
    }
}

fn lasted_s(settings: &EffectiveSettings, series: &SeriesResult) -> f64 {
    match settings.scenario {
        Scenario::Offline => series.max_latency_s,
        Scenario::Server => series.final_query_scheduled_s,
        Scenario::SingleStream | Scenario::MultiStream => series.final_query_issued_s,
    }
}

fn constraints_advice(settings: &EffectiveSettings, series: &SeriesResult) -> String {
    let fraction = settings.target_latency_percentile;
    if settings.scenario != Scenario::Server {
        return String::new();
    }
    if !settings.use_token_latencies {
        let kept = series.samples.percentile(fraction) <= settings.target_latency_ns;
        return if kept {
            ""
        } else {
            "Reduce target QPS to improve latency."
        }
        .to_owned();
    }
    let tokens = &series.tokens;
    let mut advice = Vec::new();
    if token_percentile(&tokens.first, series, fraction) > settings.server_ttft_latency {
        advice.push("TTFT constrain not met: Reduce target QPS to improve latency.");
    }
    if token_percentile(&tokens.per_token, series, fraction) > settings.server_tpot_latency {
        advice.push("TPOT constrain not met: Reduce target QPS to improve latency.");
    }
    advice.join("\n * ")
}

/// Returns a percentile of token latencies; 0 when no first token arrived, as in LoadGen.
pub(super) fn token_percentile(latencies: &Latencies, series: &SeriesResult, fraction: f64) -> i64 {
    if series.tokens.first.is_empty() {
        return 0;
    }
    latencies.percentile(fraction)
}

fn judge_stopping(settings: &EffectiveSettings, series: &SeriesResult) -> StoppingResult {
    let judge = |samples, bound_ns| {
        Stopping::judge(
            settings,
            series.queries_issued,
            samples,
            &series.queries,
            bound_ns,
        )
    };
    if !settings.use_token_latencies {
        return StoppingResult::Samples(judge(&series.samples, settings.target_latency_ns));
    }
    // LoadGen evaluates first tokens only if the later tokens pass.
    let per_token = judge(&series.tokens.per_token, settings.server_tpot_latency);
    let first = if per_token.met {
        judge(&series.tokens.first, settings.server_ttft_latency)
    } else {
        Stopping::default()
    };
    StoppingResult::Tokens { first, per_token }
}

/// Returns a rate without LoadGen's overhead: the inverse of the mean latency.
pub(super) fn per_second_of_mean(mean_ns: i64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "LoadGen computes in doubles")]
    {
        1.0 / (mean_ns as f64 / NS_PER_S)
    }
}
