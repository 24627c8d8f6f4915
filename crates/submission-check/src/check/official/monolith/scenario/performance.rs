//! The monolith's check of a scenario's performance run and of its power measurement.

use regatta_catalogue::round::{BenchmarkRules, OfficialCheck, SubmittedScenario, Trait};
use regatta_types::Scenario;

use super::{
    super::{
        super::{
            Context, Note,
            file_set::{self, FileSet},
            power,
            python::Raised,
            result,
        },
        Crash, performance,
    },
    MonolithJudge, Performance,
};
use crate::check::run_log::RunLog;

impl MonolithJudge<'_> {
    /// Returns the run if it is valid, and sets the item's value from it.
    pub(super) fn performance(
        &mut self,
        rules: &BenchmarkRules,
        has_power: bool,
    ) -> Result<Option<Performance>, Crash> {
        let directory = format!("{}/performance/run_1", self.outcome.path);
        if !self.context.tree.exists(&directory) {
            self.note(&directory, "is missing".to_owned(), true);
            return Ok(None);
        }
        let set = if has_power {
            FileSet::PERFORMANCE_WITH_POWER
        } else {
            FileSet::PERFORMANCE
        };
        if let Some(fault) = file_set::fault(self.context, &directory, set) {
            let fatal = self.context.checker.fails(OfficialCheck::PerformanceFileSet);
            self.note(&directory, fault, fatal);
            if fatal {
                return Ok(None);
            }
        }
        let mut notes = Vec::new();
        let judged = self.judged_run(rules, &directory, has_power, &mut notes);
        self.outcome.notes.append(&mut notes);
        let performance = match judged {
            Ok(performance) => performance,
            Err(Raised(reason)) => {
                self.note(&directory, reason, true);
                None
            }
        };
        let Some(performance) = performance else {
            self.outcome.errors += 1;
            return Ok(None);
        };
        self.outcome.passed = self.scenario;
        self.outcome.value = Some(match performance.power {
            None => performance.result.to_string(),
            Some(power) => format!("{:.6} with power_metric = {power:.6}", performance.result.value()),
        });
        Ok(Some(performance))
    }

    fn judged_run(
        &self,
        rules: &BenchmarkRules,
        directory: &str,
        has_power: bool,
        notes: &mut Vec<Note>,
    ) -> Result<Option<Performance>, Raised> {
        let context = self.context;
        let log = performance::read(context, directory)?;
        let outcome = performance::check(self.run_of(rules, directory), &log, notes)?;
        if context.checker.has(Trait::EqualIssueInConf) {
            // The official code compares the log's setting with a text, which LoadGen does not write.
            let log = log.text("effective_sample_concatenate_permutation") == Some("true");
            let required = rules.equal_issue && self.job.place.division != "open";
            if required && !log && !self.equal_issue {
                return Err(Raised::new(
                    "no conf file turns sample_concatenate_permutation on",
                ));
            }
        }
        let mut valid = outcome.valid;
        let mut metric = None;
        if has_power {
            let results = &self.outcome.path;
            let ranging = match context.checker.looks_at(OfficialCheck::Ranging) {
                true => Some(self.ranging(rules, &format!("{results}/performance/ranging"))?),
                false => None,
            };
            for (part, set) in [
                ("run_1", FileSet::PERFORMANCE_WITH_POWER),
                ("ranging", FileSet::PERFORMANCE_WITH_POWER),
                ("power", FileSet::POWER),
            ] {
                let path = format!("{results}/performance/{part}");
                if let Some(text) = file_set::fault(context, &path, set) {
                    valid = false;
                    let fatal = true;
                    notes.push(Note { path, text, fatal });
                }
            }
            let scenario = self
                .scenario
                .ok_or_else(|| Raised::new("no scenario to measure power for"))?;
            if scenario == SubmittedScenario::Interactive && context.checker.has(Trait::InteractiveHalfKnown)
            {
                return Err(Raised::new("Unknown scenario: Interactive"));
            }
            if let Some(ranging) = ranging.filter(|_| context.checker.has(Trait::RangingPower)) {
                let directory = format!("{results}/performance/ranging");
                mean_power(context, &directory, &ranging, scenario)?;
            }
            metric = Some(mean_power(context, directory, &log, scenario)?);
            for fault in power::faults(context, &format!("{results}/performance")) {
                valid = false;
                notes.push(fault.into_note());
            }
        }
        Ok(valid.then_some(Performance {
            result: outcome.result,
            inferred: outcome.inferred,
            power: metric,
        }))
    }

    /// Returns the ranging run's log, which must have a result.
    fn ranging(&self, rules: &BenchmarkRules, directory: &str) -> Result<RunLog, Raised> {
        let log = performance::read(self.context, directory)?;
        let scenario = log.text("effective_scenario").and_then(|name| {
            Scenario::ALL
                .into_iter()
                .find(|scenario| scenario.as_str() == name)
        });
        let scenario = scenario.ok_or_else(|| Raised::new(format!("{directory}: no scenario")))?;
        result::measured(self.context, rules, &log, scenario)?;
        Ok(log)
    }
}

/// Returns the power metric of a run, which must have samples in its window.
fn mean_power(
    context: &Context<'_>,
    directory: &str,
    log: &RunLog,
    scenario: SubmittedScenario,
) -> Result<f64, Raised> {
    let metric = power::metric(context, directory, log, scenario)?;
    metric.ok_or_else(|| Raised::new("spl.txt has no samples in the measured window"))
}
