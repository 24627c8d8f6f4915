//! Bounds of settings with which a run can start and end. The LoadGen crate checks memory and the sample library.

use std::{fmt, time::Duration};

use regatta_types::{Mode, Scenario};

use super::{ConfLine, SettingSources, TestSettings};

/// The longest run that is accepted. MLPerf requires ten minutes, and the slowest benchmarks take days.
pub const MAX_RUN: Duration = Duration::from_hours(30 * 24);

const MAX_MS: u64 = MAX_RUN.as_secs() * 1000;
const NS_PER_MS: u64 = 1_000_000;
/// LoadGen counts samples in 32 bits.
const MAX_SAMPLES: u64 = u32::MAX as u64;
/// Above this rate, two queries of a schedule are due in the same nanosecond.
const HIGHEST_RATE: f64 = 1e9;
const MAX_ISSUE_THREADS: u64 = 256;
/// FindPeakPerformance: range of decimals. Outside of it, a rate is finer than its 64 bits, or coarser than any rate.
const PEAK_DECIMALS: (i32, i32) = (-9, 6);
/// FindPeakPerformance: with a smaller growth the search takes thousands of series.
const MIN_PEAK_STEP: f64 = 0.01;
const MAX_PEAK_STEP: f64 = 1000.0;

/// The error for a setting with which a run cannot start or end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{key} is {value}, but must be {bound}; hint: {hint}", prefix(.line.as_ref()))]
pub struct SettingError {
    /// The setting, by its conf key when it has one.
    pub key: &'static str,
    /// Its value, in the key's unit.
    pub value: String,
    /// The accepted values.
    pub bound: String,
    /// How to fix it.
    pub hint: &'static str,
    /// The line that sets it, when a conf file does.
    pub line: Option<ConfLine>,
}

impl SettingError {
    /// Adds the line that sets the value, if `sources` has one.
    fn located(mut self, sources: &SettingSources) -> Self {
        self.line = sources.line(self.key).cloned();
        self
    }
}

fn prefix(line: Option<&ConfLine>) -> String {
    line.map(|line| format!("{line}: ")).unwrap_or_default()
}

fn refuse(key: &'static str, value: impl fmt::Display, bound: String, hint: &'static str) -> SettingError {
    SettingError {
        key,
        value: value.to_string(),
        bound,
        hint,
        line: None,
    }
}

fn integer(
    key: &'static str,
    value: u64,
    (low, high): (u64, u64),
    unit: &str,
    hint: &'static str,
) -> Result<(), SettingError> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    let bound = format!("from {low} to {high}{unit}");
    Err(refuse(key, format_args!("{value}{unit}"), bound, hint))
}

/// Checks that a decimal is between two bounds, both exclusive.
fn decimal(
    key: &'static str,
    value: f64,
    (low, high): (f64, f64),
    unit: &str,
    hint: &'static str,
) -> Result<(), SettingError> {
    if value > low && value < high {
        return Ok(());
    }
    let bound = format!("above {low:?} and below {high:?}{unit}");
    Err(refuse(key, format_args!("{value:?}{unit}"), bound, hint))
}

impl TestSettings {
    /// Checks that a run with these settings can start and ends within [`MAX_RUN`]. It only checks what the settings alone determine.
    /// `sources` are the lines of conf files that set them.
    ///
    /// # Errors
    /// The first setting that is out of bounds.
    pub fn check(&self, sources: &SettingSources) -> Result<(), SettingError> {
        self.check_values(sources).map_err(|error| error.located(sources))
    }

    fn check_values(&self, sources: &SettingSources) -> Result<(), SettingError> {
        self.check_durations()?;
        self.check_sample_counts()?;
        self.check_logging()?;
        match self.scenario {
            Scenario::SingleStream => self.check_single_stream()?,
            Scenario::MultiStream => self.check_multi_stream()?,
            Scenario::Server => self.check_server()?,
            // The number of samples does not depend on it then.
            Scenario::Offline if self.offline_expected_qps == 0.0 && self.has_offline_samples() => {}
            Scenario::Offline => check_rate(self.offline_expected_qps)?,
        }
        if self.mode == Mode::FindPeakPerformance {
            self.check_search()?;
        }
        if self.mode != Mode::AccuracyOnly {
            self.check_length(sources)?;
        }
        Ok(())
    }

    /// Returns warnings about settings that are within the bounds.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.mode != Mode::AccuracyOnly && self.min_duration_ms == 0 {
            warnings.push(
                "min_duration is 0 ms: the run may be VALID however short it is; hint: MLPerf requires 600000"
                    .to_owned(),
            );
        }
        warnings
    }

    fn check_durations(&self) -> Result<(), SettingError> {
        let bounds = (0, MAX_MS);
        let hint = "MLPerf requires ten minutes, 600000";
        integer("min_duration", self.min_duration_ms, bounds, " ms", hint)?;
        integer(
            "max_duration",
            self.max_duration_ms,
            bounds,
            " ms",
            "0 sets no limit",
        )
    }

    fn check_sample_counts(&self) -> Result<(), SettingError> {
        let (bounds, hint) = ((0, MAX_SAMPLES), "0 uses the sample library's count");
        let key = "performance_sample_count_override";
        integer(key, self.performance_sample_count_override, bounds, "", hint)?;
        let key = "accuracy_sample_count_override";
        integer(key, self.accuracy_sample_count_override, bounds, "", hint)
    }

    fn check_logging(&self) -> Result<(), SettingError> {
        let percent = self.accuracy_log_probability * 100.0;
        if !(0.0..=100.0).contains(&percent) {
            let bound = "from 0 to 100 percent".to_owned();
            let value = format_args!("{percent:?} percent");
            return Err(refuse("accuracy_log_probability", value, bound, "0 logs none"));
        }
        let latency = |key, ns: u64| integer(key, ns / NS_PER_MS, (0, MAX_MS), " ms", "give milliseconds");
        if self.use_token_latencies {
            latency("ttft_latency", self.server_ttft_latency)?;
            latency("tpot_latency", self.server_tpot_latency)?;
        }
        if self.infer_token_latencies {
            let (key, bounds) = ("token_latency_scaling_factor", (0, MAX_SAMPLES));
            integer(
                key,
                self.token_latency_scaling_factor,
                bounds,
                "",
                "give tokens per sample",
            )?;
        }
        Ok(())
    }

    fn check_single_stream(&self) -> Result<(), SettingError> {
        check_percentile(self.single_stream_target_latency_percentile)?;
        check_expected_latency(self.single_stream_expected_latency_ns)
    }

    fn check_multi_stream(&self) -> Result<(), SettingError> {
        check_percentile(self.multi_stream_target_latency_percentile)?;
        let (samples, hint) = (
            self.multi_stream_samples_per_query,
            "MLPerf requires 8 samples per query",
        );
        integer("samples_per_query", samples, (1, MAX_SAMPLES), "", hint)?;
        check_expected_latency(self.multi_stream_expected_latency_ns)
    }

    fn check_server(&self) -> Result<(), SettingError> {
        check_percentile(self.server_target_latency_percentile)?;
        let bound_ms = self.server_target_latency_ns / NS_PER_MS;
        let hint = "give the benchmark's latency bound in milliseconds, without decimals";
        integer("target_latency", bound_ms, (0, MAX_MS), " ms", hint)?;
        let threads = self.server_num_issue_query_threads;
        let hint = "0 issues from LoadGen's thread";
        let key = "server_num_issue_query_threads";
        integer(key, threads, (0, MAX_ISSUE_THREADS), "", hint)?;
        check_rate(self.server_target_qps)
    }

    fn check_search(&self) -> Result<(), SettingError> {
        let decimals = self.server_find_peak_qps_decimals_of_precision;
        let (low, high) = PEAK_DECIMALS;
        if !(low..=high).contains(&decimals) {
            let key = "server_find_peak_qps_decimals_of_precision";
            return Err(refuse(
                key,
                decimals,
                format!("from {low} to {high}"),
                "1 is LoadGen's default",
            ));
        }
        let (key, step) = (
            "server_find_peak_qps_boundary_step_size",
            self.server_find_peak_qps_boundary_step_size,
        );
        let bounds = (MIN_PEAK_STEP, MAX_PEAK_STEP);
        decimal(key, step, bounds, "", "1.0, LoadGen's default, doubles the rate")
    }

    /// Returns whether Offline has samples at an expected rate of 0.
    const fn has_offline_samples(&self) -> bool {
        self.min_query_count > 0 || self.performance_issue_unique || matches!(self.mode, Mode::AccuracyOnly)
    }

    /// Checks that the requested queries are issued within [`MAX_RUN`] at the expected rate. A default rate is not an expectation, except in Server,
    /// which has no other rate.
    fn check_length(&self, sources: &SettingSources) -> Result<(), SettingError> {
        let pace = self.expected_pace();
        let is_expected = self.scenario == Scenario::Server || sources.line(pace.key).is_some();
        if !is_expected || pace.rate == 0.0 {
            return Ok(());
        }
        if self.expected_seconds(pace.rate) <= MAX_RUN.as_secs_f64() {
            return Ok(());
        }
        let days = MAX_RUN.as_secs() / 86_400;
        let most = most_within_longest(pace.rate);
        if most == 0 {
            let bound = format!("such that a {} occurs within {days} days", pace.unit);
            let (value, hint) = (
                format!("{:?}{}", pace.value, pace.value_unit),
                "give what the system reaches",
            );
            return Err(refuse(pace.key, value, bound, hint));
        }
        let (count, rate) = (self.min_query_count, pace.rate);
        let bound =
            format!("at most {most}: at the expected {rate:?} per second, more take over {days} days");
        Err(refuse("min_query_count", count, bound, pace.hint))
    }

    fn expected_pace(&self) -> Pace {
        let by_latency = |ns: f64| Pace {
            rate: 1e9 / ns,
            unit: "query",
            key: "target_latency",
            value: ns / 1e6,
            value_unit: " ms",
            hint: "lower it, or set target_latency to a latency that the system reaches",
        };
        let by_rate = |rate: f64, unit| Pace {
            rate,
            unit,
            key: "target_qps",
            value: rate,
            value_unit: " per second",
            hint: "lower it, or set target_qps to a rate that the system reaches",
        };
        match self.scenario {
            Scenario::SingleStream => by_latency(self.single_stream_expected_latency_ns),
            Scenario::MultiStream => by_latency(self.multi_stream_expected_latency_ns),
            Scenario::Server => by_rate(self.server_target_qps, "query"),
            Scenario::Offline => by_rate(self.offline_expected_qps, "sample"),
        }
    }

    /// Returns how long queries are issued when the system has the expected speed. Limits that end the run early are ignored, because
    /// LoadGen generates all queries anyway.
    fn expected_seconds(&self, rate: f64) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let (queries, min_s) = (self.min_query_count as f64, self.min_duration_ms as f64 / 1e3);
        // Server's schedule continues to the first query after the duration.
        let more = if self.scenario == Scenario::Server {
            1.0
        } else {
            0.0
        };
        min_s.max((queries + more) / rate)
    }
}

/// The expected speed of the system, and the setting that states it.
struct Pace {
    /// Queries per second; Offline: samples per second.
    rate: f64,
    /// The counted unit.
    unit: &'static str,
    key: &'static str,
    value: f64,
    value_unit: &'static str,
    hint: &'static str,
}

fn most_within_longest(rate: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "rounds down, and limits larger values to the maximum"
    )]
    {
        (MAX_RUN.as_secs_f64() * rate) as u64
    }
}

fn check_percentile(fraction: f64) -> Result<(), SettingError> {
    let hint = "remove the line to use the round's percentile";
    let key = "target_latency_percentile";
    decimal(key, fraction * 100.0, (0.0, 100.0), " percent", hint)
}

/// Checks the expected latency of SingleStream and MultiStream.
fn check_expected_latency(ns: f64) -> Result<(), SettingError> {
    #[expect(clippy::cast_precision_loss, reason = "a bound of 30 days")]
    let longest = MAX_MS as f64;
    let hint = "give the milliseconds that a query is expected to take";
    decimal("target_latency", ns / 1e6, (0.0, longest), " ms", hint)
}

fn check_rate(rate: f64) -> Result<(), SettingError> {
    let hint = "give the rate that the system is expected to reach";
    decimal("target_qps", rate, (0.0, HIGHEST_RATE), " per second", hint)
}
