//! The monolith's check of a performance run's detail log, including the runs of compliance tests.

use regatta_catalogue::round::{BenchmarkRules, OfficialCheck, Seeds, SubmittedScenario, TokenLimits, Trait};
use regatta_mllog::read::Value;
use regatta_types::Scenario;

use super::{
    super::{
        Context, Note,
        python::{Number, Raised, log_truthy},
        result,
    },
    system::DescribedSystem,
};
use crate::check::run_log::{RunLog, shown};

/// The input of the check of one run.
#[derive(Clone, Copy)]
pub(super) struct MonolithRun<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) rules: &'a BenchmarkRules,
    pub(super) system: &'a DescribedSystem,
    pub(super) division: &'a str,
    /// The scenario that the directory name denotes, or `None` if it denotes none.
    pub(super) scenario: Option<SubmittedScenario>,
    /// The directory that contains the log.
    pub(super) directory: &'a str,
}

/// The validity and the result of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct PerformanceOutcome {
    pub(super) valid: bool,
    pub(super) result: Number,
    pub(super) inferred: bool,
}

struct PerformanceJudge<'a> {
    run: MonolithRun<'a>,
    path: String,
    notes: &'a mut Vec<Note>,
    valid: bool,
}

/// Reads a log as the monolith's parser does: a single bad line raises an exception.
pub(super) fn read(context: &Context<'_>, directory: &str) -> Result<RunLog, Raised> {
    let path = format!("{directory}/mlperf_log_detail.txt");
    let log =
        RunLog::read(context.tree, &path).map_err(|error| Raised::new(format!("{path}: {}", error.0)))?;
    match log.refused.first() {
        None => Ok(log),
        Some(bad) => Err(Raised::new(format!("{path}, line {}: {}", bad.line, bad.text))),
    }
}

/// Returns the number of errors in the log, as the checker's revision counts them.
pub(super) fn errors(context: &Context<'_>, log: &RunLog) -> u64 {
    match log.value("num_errors") {
        Some(value) if context.checker.has(Trait::CountsNumErrors) => value.as_u64().unwrap_or(1),
        _ => log.error_count,
    }
}

pub(super) fn check(
    run: MonolithRun<'_>,
    log: &RunLog,
    notes: &mut Vec<Note>,
) -> Result<PerformanceOutcome, Raised> {
    let path = format!("{}/mlperf_log_detail.txt", run.directory);
    let mut judge = PerformanceJudge {
        run,
        path,
        notes,
        valid: true,
    };
    let measured = judge.scenario_and_result(log)?;
    judge.validity(log);
    judge.tokens(log)?;
    judge.equal_issue(log);
    judge.errors(log);
    judge.samples(log)?;
    judge.seeds(log);
    judge.early_stopping(log, measured.0)?;
    judge.counts(log, measured.0)?;
    judge.duration(log)?;
    let (result, inferred) = judge.inference(log, measured)?;
    judge.network(log)?;
    Ok(PerformanceOutcome {
        valid: judge.valid,
        result,
        inferred,
    })
}

impl PerformanceJudge<'_> {
    /// Adds a note; the run fails if it is `fatal`.
    fn fault(&mut self, fatal: bool, text: String) {
        self.valid &= !fatal;
        let path = self.path.clone();
        self.notes.push(Note { path, text, fatal });
    }

    fn fails(&self, check: OfficialCheck) -> bool {
        self.run.context.checker.fails(check)
    }

    fn looks_at(&self, check: OfficialCheck) -> bool {
        self.run.context.checker.looks_at(check)
    }

    fn scenario_and_result(&self, log: &RunLog) -> Result<(Scenario, f64), Raised> {
        let name = log
            .text("effective_scenario")
            .ok_or_else(|| Raised::new("effective_scenario is missing from the log"))?;
        let scenario = Scenario::ALL
            .into_iter()
            .find(|scenario| scenario.as_str() == name)
            .ok_or_else(|| Raised::new(format!("effective_scenario `{name}` is none")))?;
        let result = result::measured(self.run.context, self.run.rules, log, scenario)?;
        Ok((scenario, result))
    }

    fn validity(&mut self, log: &RunLog) {
        if log.text("result_validity") != Some("VALID") {
            let found = log
                .value("result_validity")
                .map_or_else(|| "nothing".to_owned(), shown);
            self.fault(true, format!("result_validity is {found}, not VALID"));
        }
    }

    fn tokens(&mut self, log: &RunLog) -> Result<(), Raised> {
        if !self.run.rules.token_latencies {
            return Ok(());
        }
        let within = if log_truthy(log.value("requested_use_token_latencies")) {
            self.token_limits(log)?
        } else {
            self.fault(true, "use_token_latencies is not on".to_owned());
            false
        };
        if self.run.context.checker.has(Trait::TokenLimitsDecide) {
            self.valid = within;
        }
        Ok(())
    }

    /// Returns whether the token latencies are within their limits, if there are any.
    fn token_limits(&mut self, log: &RunLog) -> Result<bool, Raised> {
        let Some(limits) = self.limits_required()? else {
            return Ok(true);
        };
        let (first, each) = (limits.first_token_ns as f64, limits.per_token_ns as f64);
        // The second key is not read if the first one is too high.
        let found = Number::of(log.value("result_first_token_99.00_percentile_latency_ns"))?;
        if found.value() >= first {
            self.fault(
                true,
                format!("the first token takes {found} ns, it must be below {first}"),
            );
            return Ok(false);
        }
        let found = Number::of(log.value("result_time_per_output_token_99.00_percentile_ns"))?;
        if found.value() >= each {
            self.fault(true, format!("a token takes {found} ns, it must be below {each}"));
            return Ok(false);
        }
        Ok(true)
    }

    fn limits_required(&self) -> Result<Option<TokenLimits>, Raised> {
        let MonolithRun { scenario, rules, .. } = self.run;
        let scenario = if self.run.context.checker.has(Trait::TokenLimitsInEveryScenario) {
            (scenario != Some(SubmittedScenario::Offline)).then_some(SubmittedScenario::Server)
        } else {
            scenario.filter(|scenario| scenario.run() == Scenario::Server)
        };
        let Some(scenario) = scenario else { return Ok(None) };
        let limits = rules.token_limits.get(&scenario).copied();
        let limits = limits.ok_or_else(|| Raised::new(format!("there are no token limits of {scenario}")))?;
        Ok(Some(limits))
    }

    fn equal_issue(&mut self, log: &RunLog) {
        let exempt = self.run.context.checker.has(Trait::EqualIssueNotInOpen) && self.run.division == "open";
        let required = self.run.rules.equal_issue && self.looks_at(OfficialCheck::EqualIssue) && !exempt;
        if required && log.value("effective_sample_concatenate_permutation") != Some(&Value::Bool(true)) {
            let fatal = self.fails(OfficialCheck::EqualIssue);
            self.fault(fatal, "sample_concatenate_permutation is not on".to_owned());
        }
    }

    fn errors(&mut self, log: &RunLog) {
        let count = errors(self.run.context, log);
        if count > 0 {
            let first = log.errors.first().map_or_else(String::new, |error| {
                format!("; line {}: {}", error.line, error.text)
            });
            self.fault(true, format!("LoadGen reports {count} errors{first}"));
        }
    }

    fn samples(&mut self, log: &RunLog) -> Result<(), Raised> {
        let found = Number::of(log.value("effective_performance_sample_count"))?;
        let needed = self.run.rules.performance_samples;
        if found.value() < needed as f64 {
            self.fault(
                true,
                format!("performance samples {found}, at least {needed} are needed"),
            );
        }
        Ok(())
    }

    fn seeds(&mut self, log: &RunLog) {
        let round = self.run.context.round;
        let seeds = if self.path.contains("TEST05") {
            round.test05_seeds()
        } else {
            round.seeds()
        };
        let Some(Seeds {
            qsl,
            sample_index,
            schedule,
        }) = seeds
        else {
            return;
        };
        let fatal = self.fails(OfficialCheck::Seeds);
        for (name, expected) in [
            ("qsl", qsl),
            ("sample_index", sample_index),
            ("schedule", schedule),
        ] {
            let found = log.value(&format!("effective_{name}_rng_seed"));
            if found.and_then(Value::as_u64) != Some(expected) {
                let found = found.map_or_else(|| "nothing".to_owned(), shown);
                self.fault(
                    fatal,
                    format!("{name}_rng_seed is wrong: expected {expected}, found {found}"),
                );
            }
        }
    }

    fn early_stopping(&mut self, log: &RunLog, scenario: Scenario) -> Result<(), Raised> {
        if scenario == Scenario::Offline {
            return Ok(());
        }
        if !log_truthy(log.value("early_stopping_met")) {
            let fatal = self.fails(OfficialCheck::EarlyStopping);
            self.fault(fatal, "early stopping was not met".to_owned());
        }
        let bound = self
            .run
            .rules
            .server_latency_ns
            .filter(|_| scenario == Scenario::Server);
        let Some(bound) = bound else {
            return Ok(());
        };
        let found = Number::of(log.value("effective_target_latency_ns"))?;
        if found.value() > bound as f64 {
            let fatal = self.fails(OfficialCheck::Latency);
            self.fault(fatal, format!("target latency {found} ns, at most {bound} ns"));
        }
        Ok(())
    }

    fn counts(&mut self, log: &RunLog, scenario: Scenario) -> Result<(), Raised> {
        if scenario != Scenario::Offline {
            return Ok(());
        }
        let rules = self.run.rules;
        let freed = self.run.context.checker.has(Trait::EqualIssueFreesQueries)
            && rules.equal_issue
            && self.run.division != "open";
        if let Some(&needed) = rules.min_queries.get(&scenario).filter(|_| !freed) {
            let found = Number::of(log.value("effective_min_query_count"))?;
            if found.value() < needed as f64 {
                let fatal = self.fails(OfficialCheck::MinQueries);
                self.fault(
                    fatal,
                    format!("min_query_count {found}, at least {needed} is needed"),
                );
            }
        }
        let needed = rules
            .offline_samples_per_query
            .ok_or_else(|| Raised::new("the benchmark has no Offline sample count"))?;
        let found = Number::of(log.value("effective_samples_per_query"))?;
        if found.value() < needed as f64 {
            let fatal = self.fails(OfficialCheck::OfflineSamples);
            self.fault(
                fatal,
                format!("samples_per_query {found}, at least {needed} are needed"),
            );
        }
        Ok(())
    }

    fn duration(&mut self, log: &RunLog) -> Result<(), Raised> {
        let needed = self.run.context.round.submission.min_duration_ms;
        let found = Number::of(log.value("effective_min_duration_ms"))?;
        if found.value() < needed as f64 {
            let fatal = self.fails(OfficialCheck::MinDuration);
            self.fault(
                fatal,
                format!("min_duration {found} ms, at least {needed} ms is needed"),
            );
        }
        Ok(())
    }

    fn inference(
        &mut self,
        log: &RunLog,
        (scenario, result): (Scenario, f64),
    ) -> Result<(Number, bool), Raised> {
        let Some(to) = self.run.scenario.filter(|&to| to != scenario) else {
            return Ok((Number::Float(result), false));
        };
        let Some(inferred) = result::inferred(log, scenario, to)? else {
            if to == SubmittedScenario::Interactive && scenario != Scenario::Server {
                self.fault(true, format!("{to} is not a run of {scenario}"));
            }
            // The monolith accepts the log of any other scenario with that scenario's value.
            return Ok((Number::Float(result), false));
        };
        if !inferred.usable {
            self.fault(true, "early stopping has no estimate to infer from".to_owned());
        }
        Ok((inferred.value, true))
    }

    fn network(&mut self, log: &RunLog) -> Result<(), Raised> {
        let system = self.run.system;
        if let Some(fault) = system.network_fault(self.run.division) {
            self.fault(true, fault);
        }
        if system.network {
            let name = log
                .text("sut_name")
                .ok_or_else(|| Raised::new("sut_name is missing from the log"))?;
            if !name.contains("Network SUT") {
                self.fault(
                    true,
                    format!("the SUT's name `{name}` does not say `Network SUT`"),
                );
            }
        }
        Ok(())
    }
}
