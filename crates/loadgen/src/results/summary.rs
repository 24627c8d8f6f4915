//! The results part of `mlperf_log_summary.txt`.

use std::io::{self, Write};

use regatta_mllog::{
    format::{fixed, general},
    latency_keys::LISTED_PERCENTILES,
    summary::SummaryWriter,
};
use regatta_types::Scenario;

use super::{
    Latencies, NS_PER_S, Results, to_f64,
    verdict::{StoppingResult, per_second_of_mean, token_percentile},
};

type Out<'a, W> = &'a mut SummaryWriter<W>;

impl Results<'_> {
    /// Writes the results, their verdict and the parameters.
    ///
    /// # Errors
    /// When writing fails.
    pub fn write_summary<W: Write>(&self, out: Out<'_, W>) -> io::Result<()> {
        out.headline("MLPerf Results Summary")?;
        out.value("SUT name : ", self.sut_name)?;
        out.value("Scenario : ", self.settings.scenario)?;
        out.value("Mode     : ", self.settings.mode)?;
        self.write_metric(out)?;
        self.write_token_metric(out)?;
        self.write_inferred_metric(out)?;
        self.write_verdict(out)?;
        self.write_early_stopping(out)?;
        out.line("")?;
        out.headline("Additional Stats")?;
        self.write_stats(out)?;
        if self.settings.use_token_latencies {
            self.write_token_stats(out)?;
        }
        out.line("")?;
        out.headline("Test Parameters Used")?;
        self.write_parameters(out)
    }

    fn write_metric<W: Write>(&self, out: Out<'_, W>) -> io::Result<()> {
        let metric = self.performance().metric;
        match self.settings.scenario {
            Scenario::SingleStream | Scenario::MultiStream => {
                out.value(&format!("{} : ", metric.name), metric.text)
            }
            Scenario::Server => out.value("Completed samples per second    : ", metric.text),
            Scenario::Offline => out.value("Samples per second: ", metric.text),
        }
    }

    fn write_token_metric<W: Write>(&self, out: Out<'_, W>) -> io::Result<()> {
        if !self.settings.use_token_latencies {
            return Ok(());
        }
        let tokens = to_f64(self.series.tokens.count);
        match self.settings.scenario {
            Scenario::SingleStream | Scenario::MultiStream => {
                let fraction = self.settings.target_latency_percentile;
                let label = format!(
                    "{}th first token percentile latency (ns) : ",
                    fixed(fraction * 100.0, 1)
                );
                out.value(
                    &label,
                    token_percentile(&self.series.tokens.first, self.series, fraction),
                )
            }
            Scenario::Offline => {
                out.value("Tokens per second: ", general(tokens / self.series.max_latency_s))
            }
            Scenario::Server => {
                let rate = tokens / self.series.final_query_done_s;
                out.value("Completed tokens per second: ", fixed(rate, 2))
            }
        }
    }

    fn write_inferred_metric<W: Write>(&self, out: Out<'_, W>) -> io::Result<()> {
        if !self.settings.infer_token_latencies {
            return Ok(());
        }
        let tokens = self.settings.token_latency_scaling_factor.cast_unsigned();
        let samples = self.series.samples.len();
        match self.settings.scenario {
            Scenario::SingleStream | Scenario::MultiStream => Ok(()),
            Scenario::Offline => {
                let rate = to_f64(tokens.wrapping_mul(samples)) / self.series.max_latency_s;
                out.value("Tokens per second (inferred): ", general(rate))
            }
            Scenario::Server => {
                let counted = tokens.wrapping_mul(samples.wrapping_sub(1));
                let rate = to_f64(counted) / self.series.final_query_done_s;
                out.value("Completed tokens per second (inferred): ", fixed(rate, 2))
            }
        }
    }

    fn write_verdict<W: Write>(&self, out: Out<'_, W>) -> io::Result<()> {
        let yes = |met| if met { "Yes" } else { "NO" };
        out.value("Result is : ", if self.is_valid() { "VALID" } else { "INVALID" })?;
        if self.has_constraints() {
            out.value(
                "  Performance constraints satisfied : ",
                yes(self.constraints_met()),
            )?;
        }
        out.value("  Min duration satisfied : ", yes(self.min_duration_met))?;
        out.value("  Min queries satisfied : ", yes(self.min_queries_met))?;
        out.value("  Early stopping satisfied: ", yes(self.stopping.met()))?;
        if self.is_valid() {
            return Ok(());
        }
        out.line("Recommendations:")?;
        if !self.constraints_met() {
            out.value(" * ", &self.constraints_advice)?;
        }
        if !self.min_duration_met {
            out.value(" * ", self.duration_advice())?;
        }
        if !self.min_queries_met {
            out.line(
                " * The test exited early, before enough queries were issued.\n   See the detailed log for why this \
                 may have occurred.",
            )?;
        }
        Ok(())
    }

    fn write_early_stopping<W: Write>(&self, out: Out<'_, W>) -> io::Result<()> {
        if self.settings.scenario == Scenario::Offline {
            return Ok(());
        }
        match &self.stopping {
            StoppingResult::Samples(stopping) => {
                out.line("Early Stopping Result:")?;
                out.line(&stopping.text)
            }
            StoppingResult::Tokens { first, per_token } => {
                out.line("TTFT Early Stopping Result:")?;
                out.line(&first.text)?;
                out.line("TPOT Early Stopping Result:")?;
                out.line(&per_token.text)
            }
        }
    }

    fn write_stats<W: Write>(&self, out: Out<'_, W>) -> io::Result<()> {
        let series = self.series;
        let gaps = to_f64(series.samples.len().wrapping_sub(1));
        match self.settings.scenario {
            Scenario::SingleStream => {
                let with = gaps / series.final_query_issued_s;
                let without = per_second_of_mean(Self::mean(&series.samples));
                out.value("QPS w/ loadgen overhead         : ", fixed(with, 2))?;
                out.value("QPS w/o loadgen overhead        : ", fixed(without, 2))?;
                out.line("")?;
            }
            Scenario::Server => {
                let scheduled = gaps / series.final_query_scheduled_s;
                out.value("Scheduled samples per second : ", fixed(scheduled, 2))?;
            }
            Scenario::MultiStream => out.line("Per-query latency:  ")?,
            Scenario::Offline => {}
        }
        let latencies = self.judged_latencies();
        out.value("Min latency (ns)                : ", latencies.min())?;
        out.value("Max latency (ns)                : ", latencies.max())?;
        out.value("Mean latency (ns)               : ", Self::mean(latencies))?;
        for percentile in LISTED_PERCENTILES {
            let label = format!("{} percentile latency (ns)   : ", percentile.name);
            out.value(&label, latencies.percentile(percentile.fraction))?;
        }
        Ok(())
    }

    fn write_token_stats<W: Write>(&self, out: Out<'_, W>) -> io::Result<()> {
        let (series, tokens) = (self.series, &self.series.tokens);
        let count = to_f64(tokens.count);
        out.line("")?;
        match self.settings.scenario {
            Scenario::SingleStream => {
                #[expect(clippy::cast_precision_loss, reason = "LoadGen computes in doubles")]
                let mean_s = Self::mean(&series.samples) as f64 / NS_PER_S;
                let with = count / series.final_query_issued_s;
                let without = count / (mean_s * to_f64(series.samples.len()));
                out.value("TPS w/ loadgen overhead         : ", fixed(with, 2))?;
                out.value("TPS w/o loadgen overhead        : ", fixed(without, 2))?;
            }
            Scenario::Server => {
                let rate = count / series.final_query_done_s;
                out.value("Completed tokens per second                 : ", fixed(rate, 2))?;
            }
            Scenario::MultiStream => {}
            Scenario::Offline => return Ok(()),
        }
        const FIRST: [&str; 4] = [
            "Min First Token latency (ns)                : ",
            "Max First Token latency (ns)                : ",
            "Mean First Token latency (ns)               : ",
            " percentile first token latency (ns)   : ",
        ];
        const PER_TOKEN: [&str; 4] = [
            "Min Time per Output Token (ns)                : ",
            "Max Time per Output Token (ns)                : ",
            "Mean Time per Output Token (ns)               : ",
            " percentile time to output token (ns)   : ",
        ];
        self.write_token_latencies(out, &FIRST, &tokens.first)?;
        out.line("")?;
        self.write_token_latencies(out, &PER_TOKEN, &tokens.per_token)
    }

    fn write_token_latencies<W: Write>(
        &self,
        out: Out<'_, W>,
        labels: &[&str; 4],
        latencies: &Latencies,
    ) -> io::Result<()> {
        let none = self.series.tokens.first.is_empty();
        let or_zero = |value| if none { 0 } else { value };
        out.value(labels[0], or_zero(latencies.min()))?;
        out.value(labels[1], or_zero(latencies.max()))?;
        out.value(labels[2], or_zero(Self::mean(latencies)))?;
        for percentile in LISTED_PERCENTILES {
            let label = format!("{}{}", percentile.name, labels[3]);
            out.value(
                &label,
                token_percentile(latencies, self.series, percentile.fraction),
            )?;
        }
        Ok(())
    }

    fn write_parameters<W: Write>(&self, out: Out<'_, W>) -> io::Result<()> {
        let s = self.settings;
        out.value("samples_per_query : ", s.samples_per_query)?;
        out.value("target_qps : ", general(s.target_qps))?;
        if s.use_token_latencies {
            out.value("ttft_latency (ns): ", s.server_ttft_latency)?;
            out.value("tpot_latency (ns): ", s.server_tpot_latency)?;
        } else {
            out.value("target_latency (ns): ", s.target_latency_ns)?;
        }
        out.value("max_async_queries : ", s.max_async_queries)?;
        out.value("min_duration (ms): ", s.min_duration_ms)?;
        out.value("max_duration (ms): ", s.max_duration_ms)?;
        out.value("min_query_count : ", s.min_query_count)?;
        out.value("max_query_count : ", s.max_query_count)?;
        out.value("qsl_rng_seed : ", s.qsl_rng_seed)?;
        out.value("sample_index_rng_seed : ", s.sample_index_rng_seed)?;
        out.value("schedule_rng_seed : ", s.schedule_rng_seed)?;
        out.value("accuracy_log_rng_seed : ", s.accuracy_log_rng_seed)?;
        out.value("accuracy_log_probability : ", general(s.accuracy_log_probability))?;
        out.value("accuracy_log_sampling_target : ", s.accuracy_log_sampling_target)?;
        out.value("print_timestamps : ", u8::from(s.print_timestamps))?;
        out.value(
            "performance_issue_unique : ",
            u8::from(s.performance_issue_unique),
        )?;
        out.value("performance_issue_same : ", u8::from(s.performance_issue_same))?;
        out.value("performance_issue_same_index : ", s.performance_issue_same_index)?;
        out.value("performance_sample_count : ", s.performance_sample_count)?;
        out.value("accuracy_sample_count : ", s.accuracy_sample_count)?;
        if s.sample_concatenate_permutation {
            out.line(
                "WARNING: sample_concatenate_permutation was set to true. \nGenerated samples per query might be \
                 different as the one in the setting.\nCheck the generated_samples_per_query line in the detailed \
                 log for the real\nsamples_per_query value",
            )?;
        }
        Ok(())
    }
}
