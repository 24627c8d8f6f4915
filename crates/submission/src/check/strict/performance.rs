//! Checks a performance run: of the submission itself or of a compliance test.

use regatta_conf::{Conf, ConfKind, TestSettings};
use regatta_mllog::read::Value;
use regatta_types::{Mode, Scenario};

use super::{case::Case, figures, generated, logged_run::LoggedRun, prescribed, records, settings};
use crate::check::{
    finding::{Findings, Severity},
    power::samples::microseconds,
    rules,
    run_log::{RunLog, shown},
};

/// The share of the minimum duration that suffices, because the clock may be adjusted during a run.
const CLOCK: f64 = 0.99;

/// The purpose of a run; the expected settings depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose<'a> {
    /// The submitted result.
    Submission,
    /// The compliance test of this name.
    Test(&'a str),
}

struct Judge<'a> {
    case: &'a Case<'a>,
    log: &'a RunLog,
    path: String,
    findings: &'a mut Findings,
}

/// Checks the run whose log was read from `directory`.
pub(super) fn check(
    case: &Case<'_>,
    directory: &str,
    log: &RunLog,
    purpose: Purpose<'_>,
    findings: &mut Findings,
) {
    let path = format!("{directory}/mlperf_log_detail.txt");
    let run = LoggedRun {
        case,
        log,
        path: &path,
    };
    log_of(&run, findings);
    duration(&run, findings);
    prescribed::check(&run, findings);
    figures::check(&run, findings);
    let mut judge = Judge {
        case,
        log,
        path,
        findings,
    };
    judge.validity();
    judge.errors();
    judge.mode("PerformanceOnly");
    judge.seeds(purpose);
    judge.counts();
    judge.stopping();
    judge.tokens();
    judge.settings(purpose);
    judge.sampling(purpose);
    judge.network();
}

/// Checks the log, the prescribed settings, the mode and the seeds of the accuracy run.
pub(super) fn check_accuracy_run(case: &Case<'_>, directory: &str, log: &RunLog, findings: &mut Findings) {
    let path = format!("{directory}/mlperf_log_detail.txt");
    let run = LoggedRun {
        case,
        log,
        path: &path,
    };
    log_of(&run, findings);
    prescribed::check(&run, findings);
    let mut judge = Judge {
        case,
        log,
        path,
        findings,
    };
    judge.errors();
    judge.mode("AccuracyOnly");
    judge.seeds(Purpose::Submission);
}

/// Checks what holds for the log of every run.
fn log_of(run: &LoggedRun<'_>, findings: &mut Findings) {
    records::check(run, findings);
    if let Some(requested) = settings::requested(run) {
        let before = findings.errors();
        settings::check(run, &requested, findings);
        // Queries can only be recomputed from settings that LoadGen itself derives.
        if findings.errors() == before {
            generated::check(run, &requested, findings);
        }
    }
}

/// Checks the run's minimum duration by the timestamps `power_begin` and `power_end`.
fn duration(run: &LoggedRun<'_>, findings: &mut Findings) {
    const END: &str = "power_end";
    let stamp = |key| run.log.text(key).and_then(microseconds);
    let Some((begin, end)) = stamp("power_begin").zip(stamp(END)) else {
        return;
    };
    let needed = run.case.context.round.submission.min_duration_ms as f64 / 1e3;
    let seconds = (end - begin) as f64 / 1e6;
    // Another check reports an end before the beginning.
    if !run.case.rules.any_duration && (0.0..needed * CLOCK).contains(&seconds) {
        let text = format!("the run lasted {seconds:.1} s, at least {needed} s are needed");
        let fix = "repeat the run at its full length";
        findings.error(rules::DURATION, (run.path, run.log.line(END)), text, fix);
    }
}

/// Checks the files of `run_1`. `surplus` is the severity of a file that does not belong there.
pub(super) fn files(case: &Case<'_>, directory: &str, surplus: Severity, findings: &mut Findings) {
    let Some(found) = case.context.tree.files(directory) else {
        let fix = "add the performance run";
        return findings.error(rules::FILE_SET, directory, "is no directory", fix);
    };
    if !found.contains(&"mlperf_log_summary.txt") {
        let path = format!("{directory}/mlperf_log_summary.txt");
        findings.error(
            rules::FILE_SET,
            &path,
            "is missing",
            "add LoadGen's summary of this run",
        );
    }
    let power = case.has_power();
    for name in found {
        let known = match name {
            "mlperf_log_summary.txt"
            | "mlperf_log_detail.txt"
            | "mlperf_log_accuracy.json"
            | "mlperf_log_trace.json"
            | "results.json"
            | ".gitkeep" => true,
            "spl.txt" => power,
            _ => false,
        };
        if !known {
            let path = format!("{directory}/{name}");
            findings.add(
                surplus,
                rules::FILE_SET,
                &path,
                "does not belong here",
                "remove it",
            );
        }
    }
}

impl Judge<'_> {
    fn error(&mut self, rule: crate::check::finding::Rule, key: &str, text: String, fix: &str) {
        let line = self.log.line(key);
        self.findings.error(rule, (self.path.as_str(), line), text, fix);
    }

    fn found(&self, key: &str) -> String {
        self.log.value(key).map_or_else(|| "missing".to_owned(), shown)
    }

    fn validity(&mut self) {
        const KEY: &str = "result_validity";
        if self.log.text(KEY) != Some("VALID") {
            let text = format!("the run is {}, not VALID", self.found(KEY));
            self.error(
                rules::VALID,
                KEY,
                text,
                "repeat the run; the summary says what was not met",
            );
        }
        for key in ["result_min_duration_met", "result_min_queries_met"] {
            if self.log.flag(key) == Some(false) {
                let text = format!("{key} is false");
                self.error(
                    rules::VALID,
                    key,
                    text,
                    "repeat the run with the round's settings",
                );
            }
        }
    }

    fn errors(&mut self) {
        for error in self.log.errors.iter().take(5) {
            let place = (self.path.as_str(), Some(error.line));
            let (text, fix) = match error.text.starts_with("error_") {
                true => (
                    format!("LoadGen reports an error: {}", error.text),
                    "remove the cause and repeat the run",
                ),
                false => (
                    format!(
                        "marked as an error, which LoadGen does with no such record: {}",
                        error.text
                    ),
                    "put LoadGen's own log of the run in its place",
                ),
            };
            self.findings.error(rules::LOADGEN_ERRORS, place, text, fix);
        }
        if self.log.error_count > 5 {
            let text = format!("{} records are marked as errors in all", self.log.error_count);
            let path = self.path.clone();
            self.findings.error(
                rules::LOADGEN_ERRORS,
                &path,
                text,
                "remove the cause and repeat the run",
            );
        }
        let stated = self.log.value("num_errors").and_then(Value::as_u64);
        if stated.is_some_and(|stated| stated != self.log.error_count) {
            let text = format!(
                "num_errors says {}, the log holds {}",
                self.found("num_errors"),
                self.log.error_count
            );
            self.error(
                rules::LOADGEN_ERRORS,
                "num_errors",
                text,
                "put LoadGen's own log in its place",
            );
        }
    }

    fn mode(&mut self, expected: &str) {
        const KEY: &str = "effective_test_mode";
        if self.log.text(KEY) != Some(expected) {
            let text = format!("the mode is {}, not {expected}", self.found(KEY));
            self.error(rules::MODE, KEY, text, "repeat the run in the right mode");
        }
    }

    fn seeds(&mut self, purpose: Purpose<'_>) {
        let round = self.case.context.round;
        let seeds = match purpose {
            Purpose::Test("TEST05") => round.test05_seeds(),
            _ => round.seeds(),
        };
        let Some(seeds) = seeds else { return };
        for (name, expected) in [
            ("qsl", seeds.qsl),
            ("sample_index", seeds.sample_index),
            ("schedule", seeds.schedule),
        ] {
            let key = format!("effective_{name}_rng_seed");
            if self.log.value(&key).and_then(Value::as_u64) != Some(expected) {
                let text = format!("{key} is {}, {} has {expected}", self.found(&key), round.name);
                self.error(
                    rules::SEEDS,
                    &key,
                    text,
                    "repeat the run with the round's mlperf.conf",
                );
            }
        }
    }

    /// Reports an error unless the value of `key` is a number of at least `needed`.
    fn at_least(&mut self, rule: crate::check::finding::Rule, key: &str, needed: u64, fix: &str) {
        if !self.log.number(key).is_some_and(|found| found >= needed as f64) {
            let text = format!("{key} is {}, at least {needed} is needed", self.found(key));
            self.error(rule, key, text, fix);
        }
    }

    fn counts(&mut self) {
        let rules_of = self.case.rules;
        let key = "effective_performance_sample_count";
        let fix = "raise performance_sample_count";
        self.at_least(rules::SAMPLES, key, rules_of.performance_samples, fix);
        // LoadGen cannot load more samples than the library has.
        let library = "qsl_reported_total_count";
        if self.log.number(key) > self.log.number(library) {
            self.at_least(
                rules::SAMPLES,
                library,
                rules_of.performance_samples,
                "run with the whole data set",
            );
        }
        if !rules_of.any_duration {
            let needed = self.case.context.round.submission.min_duration_ms;
            let fix = "set min_duration to 600000 in user.conf";
            self.at_least(rules::DURATION, "effective_min_duration_ms", needed, fix);
        }
        if self.log.text("effective_scenario") != Some("Offline") {
            return;
        }
        if let Some(needed) = rules_of.offline_samples_per_query {
            let fix = "raise min_query_count or target_qps";
            let key = "effective_samples_per_query";
            if self.case.job.place.division == "open" {
                if self.log.number(key).is_some_and(|found| found < needed as f64) {
                    let text = format!("{key} is {}, closed requires {needed}", self.found(key));
                    let line = self.log.line(key);
                    self.findings
                        .warning(rules::OFFLINE_SAMPLES, (self.path.as_str(), line), text, fix);
                }
            } else {
                self.at_least(rules::OFFLINE_SAMPLES, key, needed, fix);
            }
        }
        if let Some(&needed) = rules_of.min_queries.get(&Scenario::Offline) {
            self.at_least(
                rules::QUERIES,
                "effective_min_query_count",
                needed,
                "raise min_query_count",
            );
        }
    }

    fn stopping(&mut self) {
        if matches!(self.log.text("effective_scenario"), None | Some("Offline")) {
            return;
        }
        const KEY: &str = "early_stopping_met";
        if self.log.flag(KEY) != Some(true) {
            let text = format!("{KEY} is {}", self.found(KEY));
            self.error(rules::EARLY_STOPPING, KEY, text, "run longer, for more queries");
        }
        let bound = self.case.rules.server_latency_ns;
        if let (Some(bound), Some("Server")) = (bound, self.log.text("effective_scenario")) {
            const KEY: &str = "effective_target_latency_ns";
            if !self.log.number(KEY).is_some_and(|found| found <= bound as f64) {
                let text = format!("{KEY} is {}, at most {bound} is allowed", self.found(KEY));
                self.error(rules::LATENCY, KEY, text, "use the round's target_latency");
            }
        }
    }

    /// Checks that token latencies are recorded and within the limits of the directory's scenario.
    fn tokens(&mut self) {
        const KEY: &str = "requested_use_token_latencies";
        let rules_of = self.case.rules;
        if rules_of.token_latencies && self.log.flag(KEY) != Some(true) {
            let text = format!("{KEY} is {}", self.found(KEY));
            return self.error(rules::TOKENS, KEY, text, "set use_token_latencies to 1");
        }
        let Some(limits) = rules_of.token_limits.get(&self.case.scenario) else {
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
            if !self.log.number(key).is_some_and(|found| found < limit as f64) {
                let text = format!("{key} is {}, it must be below {limit}", self.found(key));
                self.error(rules::LATENCY, key, text, "ask for fewer queries per second");
            }
        }
    }

    fn settings(&mut self, purpose: Purpose<'_>) {
        self.equal_issue();
        for key in [
            "effective_performance_issue_unique",
            "effective_performance_issue_same",
        ] {
            let test04 = purpose == Purpose::Test("TEST04");
            let expected = test04 && key.ends_with("same");
            if self.log.flag(key).is_some_and(|found| found != expected) {
                let text = format!("{key} is {}", self.found(key));
                let fix = if test04 {
                    "run with TEST04's audit.config"
                } else {
                    "run without audit.config"
                };
                self.error(rules::TEST_SETTING, key, text, fix);
            }
        }
    }

    /// Checks that every sample is issued equally often.
    ///
    /// LoadGen before v5.0 may not log the setting. Then the queries must be whole sets of samples.
    fn equal_issue(&mut self) {
        const KEY: &str = "effective_sample_concatenate_permutation";
        const FIX: &str = "set sample_concatenate_permutation to 1";
        if !self.case.rules.equal_issue {
            return;
        }
        let run = LoggedRun {
            case: self.case,
            log: self.log,
            path: &self.path,
        };
        match self.log.value(KEY) {
            Some(_) if self.log.flag(KEY) == Some(true) => {}
            Some(_) => {
                let text = format!("{KEY} is {}", self.found(KEY));
                self.error(rules::EQUAL_ISSUE, KEY, text, FIX);
            }
            None if figures::issues_whole_sets(&run) => {}
            None => {
                let text = format!("{KEY} is not logged, and the queries are no whole sets of samples");
                self.error(rules::EQUAL_ISSUE, "generated_query_count", text, FIX);
            }
        }
    }

    /// Checks that TEST01 logs the responses that its `audit.config` samples, and that other runs log none.
    fn sampling(&mut self, purpose: Purpose<'_>) {
        const SEED: &str = "effective_accuracy_log_rng_seed";
        let test01 = purpose == Purpose::Test("TEST01");
        let keys = [
            "effective_accuracy_log_sampling_target",
            "effective_accuracy_log_probability",
        ];
        let Some(key) = keys.into_iter().find(|key| self.log.value(key).is_some()) else {
            return;
        };
        let logs = keys
            .iter()
            .any(|key| self.log.number(key).is_some_and(|share| share > 0.0));
        if logs != test01 {
            let (text, fix) = match logs {
                true => ("responses were logged", "run without TEST01's audit.config"),
                false => ("no responses were logged", "run with TEST01's audit.config"),
            };
            return self.error(
                rules::TEST_SETTING,
                key,
                format!("{text}: {key} is {}", self.found(key)),
                fix,
            );
        }
        let Some(expected) = test01.then(|| self.sampling_seed()).flatten() else {
            return;
        };
        if self.log.value(SEED).and_then(Value::as_u64) != Some(expected) {
            let text = format!("{SEED} is {}, TEST01 has {expected}", self.found(SEED));
            self.error(rules::TEST_SETTING, SEED, text, "run with TEST01's audit.config");
        }
    }

    /// Returns the seed with which the round's TEST01 samples the logged responses.
    fn sampling_seed(&self) -> Option<u64> {
        let audit = self.case.context.round.audits.get("TEST01")?;
        let conf = Conf::parse("audit.config", &audit.config).ok()?;
        let mut settings = TestSettings::new(Scenario::Offline, Mode::PerformanceOnly);
        settings.apply(&conf, ConfKind::Audit, "*").ok()?;
        Some(settings.accuracy_log_rng_seed)
    }

    fn network(&mut self) {
        let named = self
            .log
            .text("sut_name")
            .is_some_and(|name| name.contains("Network SUT"));
        if self.case.job.description.network && !named {
            let text = format!("sut_name is {}", self.found("sut_name"));
            self.error(
                rules::NETWORK,
                "sut_name",
                text,
                "a network SUT's name says `Network SUT`",
            );
        }
    }
}
