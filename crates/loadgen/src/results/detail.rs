//! The results part of `mlperf_log_detail.txt`, key by key in LoadGen's order.

use std::io;

use regatta_mllog::{
    detail::{DetailWriter, Level, PrintedValue},
    latency_keys::{LISTED_PERCENTILES, LatencyKeys},
};
use regatta_types::Scenario;

use super::{
    Latencies, Results, to_f64,
    verdict::{StoppingResult, per_second_of_mean, token_percentile},
};

/// A function that takes a key and its value.
pub(crate) type Log<'a> = &'a mut dyn FnMut(&str, PrintedValue<'_>) -> io::Result<()>;

impl Results<'_> {
    /// Writes every result as detail lines, for callers without a complete run's log.
    ///
    /// # Errors
    /// When writing fails.
    pub fn write_detail_lines<W: io::Write>(&self, out: W) -> io::Result<()> {
        let mut writer = DetailWriter::new(out, std::process::id());
        self.write_detail(&mut |key, value| writer.line(0, Level::Info, 0, key, &value))
    }

    /// Passes every result to `log`, except `num_errors`, which only the log knows.
    pub(crate) fn write_detail(&self, log: Log<'_>) -> io::Result<()> {
        self.log_verdict(log)?;
        self.log_stopping(log)?;
        log("result_query_count", self.series.queries_issued.into())?;
        if self.settings.scenario == Scenario::Server {
            let slow = self.series.samples.above(self.settings.target_latency_ns);
            log("result_overlatency_query_count", slow.into())?;
        }
        self.log_scenario(log)?;
        log_latencies(log, &self.series.samples, &LatencyKeys::SAMPLES)?;
        if self.settings.use_token_latencies {
            self.log_tokens(log)?;
        }
        if self.settings.infer_token_latencies {
            self.log_inferred_tokens(log)?;
        }
        Ok(())
    }

    fn log_verdict(&self, log: Log<'_>) -> io::Result<()> {
        let validity = if self.is_valid() { "VALID" } else { "INVALID" };
        log("result_validity", validity.into())?;
        if self.has_constraints() {
            log("result_perf_constraints_met", self.constraints_met().into())?;
        }
        log("result_min_duration_met", self.min_duration_met.into())?;
        log("result_min_queries_met", self.min_queries_met.into())?;
        log("early_stopping_met", self.stopping.met().into())?;
        if self.is_valid() {
            return Ok(());
        }
        let mut reason = String::new();
        if !self.constraints_met() {
            reason.push_str(&self.constraints_advice);
            reason.push(' ');
        }
        if !self.min_duration_met {
            reason.push_str(self.duration_advice());
            reason.push(' ');
        }
        if !self.min_queries_met {
            reason.push_str("The test exited early, before enough queries were issued.");
        }
        log("result_invalid_reason", (&reason.replace('\n', " ")).into())
    }

    fn log_stopping(&self, log: Log<'_>) -> io::Result<()> {
        let one_line = |text: &str| text.replace('\n', " ");
        match &self.stopping {
            StoppingResult::Samples(stopping) => {
                log("early_stopping_result", (&one_line(&stopping.text)).into())
            }
            StoppingResult::Tokens { first, per_token } => {
                log("early_stopping_ttft_result", (&one_line(&first.text)).into())?;
                log("early_stopping_tpot_result", (&one_line(&per_token.text)).into())
            }
        }
    }

    fn log_scenario(&self, log: Log<'_>) -> io::Result<()> {
        let series = self.series;
        let gaps = to_f64(series.samples.len().wrapping_sub(1));
        let (estimate_ss, estimate_ms) = self.stopping.estimates();
        match self.settings.scenario {
            Scenario::SingleStream => {
                let with = gaps / series.final_query_issued_s;
                let without = per_second_of_mean(Self::mean(&series.samples));
                log("result_qps_with_loadgen_overhead", with.into())?;
                log("result_qps_without_loadgen_overhead", without.into())?;
                log("early_stopping_latency_ss", estimate_ss.unwrap_or(0).into())?;
                log("early_stopping_latency_ms", estimate_ms.unwrap_or(0).into())
            }
            Scenario::MultiStream => {
                log_latencies(log, &series.queries, &LatencyKeys::QUERIES)?;
                log("early_stopping_latency_ms", estimate_ms.unwrap_or(0).into())
            }
            Scenario::Server => {
                let scheduled = gaps / series.final_query_scheduled_s;
                log("result_scheduled_samples_per_sec", scheduled.into())?;
                log(
                    "result_completed_samples_per_sec",
                    self.completed_per_second().into(),
                )
            }
            Scenario::Offline => log("result_samples_per_second", self.samples_per_second().into()),
        }
    }

    fn log_tokens(&self, log: Log<'_>) -> io::Result<()> {
        let (series, tokens) = (self.series, &self.series.tokens);
        let count = to_f64(tokens.count);
        if self.settings.scenario == Scenario::Offline {
            return log("result_tokens_per_second", (count / series.max_latency_s).into());
        }
        let none = tokens.first.is_empty();
        let or_zero = |value| PrintedValue::Integer(if none { 0 } else { value });
        let keys = LatencyKeys::FIRST_TOKENS;
        log(keys.min, or_zero(tokens.first.min()))?;
        log(keys.max, or_zero(tokens.first.max()))?;
        log(keys.mean, or_zero(Self::mean(&tokens.first)))?;
        for percentile in LISTED_PERCENTILES {
            let latency = token_percentile(&tokens.first, series, percentile.fraction);
            log(&keys.percentile(percentile), latency.into())?;
        }
        let busy_ns = Self::mean(&series.samples).wrapping_mul(series.samples.len().cast_signed());
        let with = count / series.final_query_issued_s;
        log("result_token_throughput_with_loadgen_overhead", with.into())?;
        log(
            "result_token_throughput",
            (count / to_f64(busy_ns.cast_unsigned())).into(),
        )?;
        let keys = LatencyKeys::OUTPUT_TOKENS;
        for percentile in LISTED_PERCENTILES {
            let latency = token_percentile(&tokens.per_token, series, percentile.fraction);
            log(&keys.percentile(percentile), latency.into())?;
        }
        log(keys.min, or_zero(tokens.per_token.min()))?;
        log(keys.max, or_zero(tokens.per_token.max()))?;
        log(keys.mean, or_zero(Self::mean(&tokens.per_token)))?;
        log(
            "result_completed_tokens_per_second",
            (count / series.final_query_done_s).into(),
        )
    }

    fn log_inferred_tokens(&self, log: Log<'_>) -> io::Result<()> {
        let tokens = self.settings.token_latency_scaling_factor.cast_unsigned();
        let samples = self.series.samples.len();
        match self.settings.scenario {
            Scenario::Server => {
                let counted = to_f64(samples.wrapping_sub(1).wrapping_mul(tokens));
                let rate = counted / self.series.final_query_done_s;
                log("result_inferred_completed_tokens_per_second", rate.into())
            }
            Scenario::Offline => {
                let rate = to_f64(samples.wrapping_mul(tokens)) / self.series.max_latency_s;
                log("result_inferred_tokens_per_second", rate.into())
            }
            Scenario::SingleStream | Scenario::MultiStream => Ok(()),
        }
    }
}

/// Logs minimum, maximum, mean and percentiles of a series.
fn log_latencies(log: Log<'_>, latencies: &Latencies, keys: &LatencyKeys) -> io::Result<()> {
    log(keys.min, latencies.min().into())?;
    log(keys.max, latencies.max().into())?;
    log(keys.mean, Results::mean(latencies).into())?;
    for percentile in LISTED_PERCENTILES {
        let latency = latencies.percentile(percentile.fraction);
        log(&keys.percentile(percentile), latency.into())?;
    }
    Ok(())
}
