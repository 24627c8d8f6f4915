//! Checks the duration of a run by its timestamps, latencies and rates, and by the log's own clock.

use regatta_types::Scenario;

use super::{
    super::logged_run::{LoggedRun, SIX_DIGITS},
    Sizes, samples_of_rate,
};
use crate::check::{
    finding::{Findings, Severity},
    power::samples::microseconds,
    rules,
};

const BEGIN: &str = "power_begin";
const END: &str = "power_end";
/// The allowed difference of timestamps in seconds. They have milliseconds, and LoadGen reads two clocks one after the other.
const STAMPS: f64 = 0.003;
/// The daylight saving shift of local time, in seconds.
const SUMMER_TIME: f64 = 3600.0;
/// The allowed time from a query's answer to the next query: seconds, and a share of the latency.
///
/// Most published runs stay below 0.1 ms and 0.02 of the latency.
const BETWEEN_QUERIES: (f64, f64) = (0.0005, 0.03);
/// The allowed difference between two clocks of a machine, in seconds. Published runs differ by up to 4 s.
const CLOCKS_APART: f64 = 10.0;
/// The step between time zones, in seconds.
const ZONE_STEP: f64 = 900.0;
/// The earliest and the latest time zone, in seconds from UTC.
const ZONES: (f64, f64) = (-12.0 * 3600.0, 14.0 * 3600.0);

fn stamp(run: &LoggedRun<'_>, key: &str) -> Option<i64> {
    run.log.text(key).and_then(microseconds)
}

/// Returns the run's duration by its timestamps, which are in local time, in seconds.
pub(super) fn seconds_by_stamps(run: &LoggedRun<'_>) -> Option<f64> {
    Some((stamp(run, END)? - stamp(run, BEGIN)?) as f64 / 1e6)
}

/// Checks the times of a run.
pub(super) fn check(run: &LoggedRun<'_>, sizes: &Sizes, findings: &mut Findings) {
    let time = TimingCheck { run, sizes, findings };
    time.judge();
}

struct TimingCheck<'a, 'f> {
    run: &'a LoggedRun<'a>,
    sizes: &'a Sizes,
    findings: &'f mut Findings,
}

impl TimingCheck<'_, '_> {
    fn judge(mut self) {
        match self.sizes.scenario {
            Scenario::Offline => self.offline_rate(),
            Scenario::SingleStream => self.single_stream_rate(),
            Scenario::MultiStream | Scenario::Server => {}
        }
        let (Some(begin), Some(seconds)) = (stamp(self.run, BEGIN), seconds_by_stamps(self.run)) else {
            return;
        };
        let seconds = self.without_summer_time(seconds);
        let Some((least, most)) = self.bounds() else {
            return;
        };
        if !(least..=most).contains(&seconds) {
            let text = format!(
                "the run took {seconds:.3} s by its time stamps, but {least:.3} s to {most:.3} s by its figures"
            );
            self.error(END, text);
        } else {
            self.between_queries(seconds);
        }
        self.log_clock(begin as f64 / 1e6, seconds);
    }

    fn error(&mut self, key: &str, text: String) {
        self.run.error(self.findings, rules::FIGURES, key, text);
    }

    fn seconds(&self, key: &str) -> Option<f64> {
        Some(self.run.number(key)? / 1e9)
    }

    /// Returns the duration by the timestamps, corrected by one hour if daylight saving time changed during the run.
    fn without_summer_time(&self, seconds: f64) -> f64 {
        let Some((least, most)) = self.bounds() else {
            return seconds;
        };
        let candidates = [seconds, seconds + SUMMER_TIME, seconds - SUMMER_TIME];
        let fits = |seconds: &f64| (least..=most).contains(seconds);
        candidates.into_iter().find(fits).unwrap_or(seconds)
    }

    /// Returns the shortest and longest possible duration until the last answer, by latencies and rates, in seconds.
    fn bounds(&self) -> Option<(f64, f64)> {
        let (shortest, longest) = (
            self.seconds("result_min_latency_ns")?,
            self.seconds("result_max_latency_ns")?,
        );
        let gaps = (self.sizes.queries - 1) as f64;
        let (least, most) = match self.sizes.scenario {
            Scenario::Offline => (longest, longest),
            Scenario::SingleStream => {
                let issued = gaps / self.run.number("result_qps_with_loadgen_overhead")?;
                let slack = issued * SIX_DIGITS;
                (issued - slack + shortest, issued + slack + longest)
            }
            Scenario::MultiStream => {
                let mean = self.seconds("result_mean_query_latency_ns")?;
                (mean * self.sizes.queries as f64, f64::INFINITY)
            }
            Scenario::Server => {
                let done = gaps / self.run.number("result_completed_samples_per_sec")?;
                let due = gaps / self.run.number("result_scheduled_samples_per_sec")?;
                (done * (1.0 - SIX_DIGITS), due * (1.0 + SIX_DIGITS) + longest)
            }
        };
        Some((least - STAMPS, most + STAMPS))
    }

    /// Checks that Offline's rate is the number of all samples divided by the time until the last one is done.
    fn offline_rate(&mut self) {
        const KEY: &str = "result_samples_per_second";
        let Some(found) = samples_of_rate(self.run) else {
            return;
        };
        let samples = self.sizes.samples as f64;
        if (found - samples).abs() > samples * SIX_DIGITS {
            let longest = self.seconds("result_max_latency_ns").unwrap_or_default();
            let text = format!(
                "{KEY} is {}, {samples} samples in {longest} s are {:.6}",
                self.run.found(KEY),
                samples / longest
            );
            self.error(KEY, text);
        }
    }

    /// Checks that the rate without LoadGen overhead is the inverse of the mean latency.
    fn single_stream_rate(&mut self) {
        const KEY: &str = "result_qps_without_loadgen_overhead";
        let (Some(rate), Some(mean)) = (self.run.number(KEY), self.run.number("result_mean_latency_ns"))
        else {
            return;
        };
        // LoadGen rounds the mean down to a nanosecond before it computes the rate.
        let expected = 1e9 / mean;
        if (rate - expected).abs() > expected * SIX_DIGITS {
            let text = format!("{KEY} is {rate}, the mean latency of {mean} ns makes {expected:.6}");
            self.error(KEY, text);
        }
    }

    /// Checks the time between queries. In SingleStream and MultiStream, LoadGen issues a query when the previous one is
    /// answered.
    fn between_queries(&mut self, seconds: f64) {
        let key = match self.sizes.scenario {
            Scenario::SingleStream => "result_mean_latency_ns",
            Scenario::MultiStream => "result_mean_query_latency_ns",
            Scenario::Offline | Scenario::Server => return,
        };
        let Some(mean) = self.seconds(key) else { return };
        let queries = self.sizes.queries as f64;
        let in_queries = mean * queries;
        if in_queries > seconds + STAMPS + queries * 1e-9 {
            let text = format!("{queries} queries of {mean:.9} s each do not fit into {seconds:.3} s");
            return self.error(key, text);
        }
        let between = (seconds - in_queries) / queries;
        let (fixed, share) = BETWEEN_QUERIES;
        if between > fixed + share * mean {
            let text = format!(
                "of {seconds:.3} s only {in_queries:.3} s are in queries: {:.3} ms pass between two",
                between * 1e3
            );
            self.run
                .add(self.findings, Severity::Warning, rules::FIGURES, key, text);
        }
    }

    /// Checks the timestamps against the log's own clock, which starts before the run and continues through it.
    fn log_clock(&mut self, begin: f64, seconds: f64) {
        let Some(written) = self.run.log.time_ms(BEGIN).map(|ms| ms / 1e3) else {
            return;
        };
        if written + STAMPS < seconds {
            let text = format!("{seconds:.3} s long, and logged {written:.3} s after the log was begun");
            return self.error(BEGIN, text);
        }
        let started = self.run.log.text("test_datetime").and_then(universal);
        let Some(started) = started.map(|micros| micros as f64 / 1e6) else {
            return;
        };
        // `test_datetime` is in UTC with whole seconds rounded down; `power_begin` is in an unknown local time zone.
        let latest = begin - started + CLOCKS_APART;
        let earliest = begin - started - (written - seconds) - CLOCKS_APART;
        let zone = (earliest / ZONE_STEP).ceil() * ZONE_STEP;
        if zone > latest || latest < ZONES.0 || earliest > ZONES.1 {
            let text = format!(
                "power_begin is {:.0} s after test_datetime, apart from the time zone: by the log's clock the run began at most {:.0} s after the log",
                (begin - started).rem_euclid(ZONE_STEP),
                written - seconds
            );
            self.run
                .add(self.findings, Severity::Warning, rules::FIGURES, BEGIN, text);
        }
    }
}

/// Converts a timestamp, for example `2026-01-30T16:33:51Z`, to microseconds since the year 0.
fn universal(text: &str) -> Option<i64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let (year, day) = date.split_once('-')?;
    microseconds(&format!("{day}-{year} {time}.0"))
}
