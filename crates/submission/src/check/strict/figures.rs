//! A run's figures against each other, as LoadGen's `results.cc` makes them out of the same latencies: who edits one of them
//! leaves the others as they were. What a result must be is not told here.

use regatta_rules::Scenario;

use super::scenario::Case;
use crate::check::{
    finding::{Findings, Rule},
    power::samples::microseconds,
    rules,
    run_log::{RunLog, shown},
};

const MEND: &str = "put LoadGen's own log of the run in its place";
/// How far apart two writings of a figure may lie, as a share of it: rates are written with six digits.
pub(super) const ROUNDING: f64 = 1e-4;
/// A clock may be set while a run lasts.
const CLOCK: f64 = 0.99;

struct Judge<'a> {
    case: &'a Case<'a>,
    log: &'a RunLog,
    path: String,
    findings: &'a mut Findings,
}

/// Judges the performance run whose log lies in `directory`.
pub(super) fn check(case: &Case<'_>, directory: &str, log: &RunLog, findings: &mut Findings) {
    let mut judge = Judge {
        case,
        log,
        path: format!("{directory}/mlperf_log_detail.txt"),
        findings,
    };
    judge.duration();
    let scenario = log.text("effective_scenario").and_then(|name| name.parse().ok());
    match scenario {
        Some(Scenario::Offline) => judge.rate(),
        Some(scenario @ (Scenario::SingleStream | Scenario::MultiStream)) => judge.estimate(scenario),
        _ => {}
    }
}

/// The key of the latency that LoadGen holds against the target, the percentile being a share of 1.
pub(super) fn percentile_key(scenario: Scenario, share: f64) -> String {
    let per_query = match scenario {
        Scenario::MultiStream => "_per_query",
        _ => "",
    };
    format!("result_{:.2}_percentile{per_query}_latency_ns", share * 100.0)
}

impl Judge<'_> {
    fn error(&mut self, rule: Rule, key: &str, text: String, mend: &str) {
        let place = (self.path.as_str(), self.log.line(key));
        self.findings.error(rule, place, text, mend);
    }

    /// The run lasted as long as it was to last, by the clock that stamped it.
    fn duration(&mut self) {
        const END: &str = "power_end";
        let stamp = |key| self.log.text(key).and_then(microseconds);
        let Some((begin, end)) = stamp("power_begin").zip(stamp(END)) else {
            return;
        };
        let needed = self.case.context.round.submission.min_duration_ms as f64 / 1e3;
        let seconds = (end - begin) as f64 / 1e6;
        // An end before the beginning is a clock that was set back, as at the end of summer time.
        if !self.case.rules.any_duration && (0.0..needed * CLOCK).contains(&seconds) {
            let text = format!("the run lasted {seconds:.1} s, at least {needed} s are needed");
            self.error(rules::DURATION, END, text, "repeat the run at its full length");
        }
    }

    /// Early stopping estimates from above: never less than the percentile of the latencies that were seen.
    fn estimate(&mut self, scenario: Scenario) {
        let key = match scenario {
            Scenario::SingleStream => "early_stopping_latency_ss",
            _ => "early_stopping_latency_ms",
        };
        // Of benchmarks with another result LoadGen estimates something else.
        if self.case.rules.result_keys.contains_key(&scenario) {
            return;
        }
        let share = self.log.number("effective_target_latency_percentile");
        let Some(percentile) = share.map(|share| percentile_key(scenario, share)) else {
            return;
        };
        let both = self.log.number(key).zip(self.log.number(&percentile));
        if let Some((estimate, seen)) = both.filter(|(estimate, seen)| 0.0 < *estimate && estimate < seen) {
            let text = format!("{key} is {estimate}, below {percentile}, {seen}, which it is estimated from");
            self.error(rules::FIGURES, key, text, MEND);
        }
    }

    /// Offline's rate is that of all samples until the last one is done.
    fn rate(&mut self) {
        const KEY: &str = "result_samples_per_second";
        let number = |key| self.log.number(key);
        let samples = number("generated_query_count").zip(number("generated_samples_per_query"));
        let samples = samples.map(|(queries, each)| queries * each);
        let figures = number(KEY).zip(samples.zip(number("result_max_latency_ns")));
        let Some((rate, (samples, latency))) = figures.filter(|(_, (_, latency))| *latency > 0.0) else {
            return;
        };
        let expected = samples / (latency / 1e9);
        if (rate - expected).abs() > expected * ROUNDING {
            let text = format!(
                "{KEY} is {}, {samples} samples in {} ns are {expected:.6}",
                self.log.value(KEY).map_or_else(String::new, shown),
                latency
            );
            self.error(rules::FIGURES, KEY, text, MEND);
        }
    }
}
