//! The monolith's check of one scenario: measurements, accuracy, performance, power and compliance, in this order.

mod accuracy;
mod performance;
mod row;

use regatta_catalogue::round::{BenchmarkRules, OfficialCheck, SubmittedScenario, Trait};

use super::{
    super::{Context, Note, Row, python::Number, summary},
    Crash, compliance, equal_issue, measurements,
    performance::MonolithRun,
    walk::MonolithJob,
};

/// The items, rows and notes of one scenario.
#[derive(Debug, Default)]
pub(super) struct MonolithOutcome {
    pub(super) path: String,
    /// The item's value, or `None` for `NoResults`.
    pub(super) value: Option<String>,
    /// Additional items without a result.
    pub(super) failed_items: Vec<String>,
    /// The scenario, if its performance run is valid.
    pub(super) passed: Option<SubmittedScenario>,
    /// The number of errors that the CSV counts.
    pub(super) errors: u64,
    pub(super) rows: Vec<Row>,
    pub(super) notes: Vec<Note>,
    /// The reason why the official program ends here, if it does.
    pub(super) crash: Option<Crash>,
}

/// Checks a scenario.
pub(super) fn check(context: &Context<'_>, job: &&MonolithJob) -> MonolithOutcome {
    let mut judge = MonolithJudge {
        context,
        job,
        scenario: fixed(context, &job.place.scenario),
        equal_issue: false,
        outcome: MonolithOutcome {
            path: job.place.below("results"),
            ..MonolithOutcome::default()
        },
    };
    judge.outcome.crash = judge.run().err();
    judge.outcome
}

/// Returns the scenario that a directory name denotes: spelt exactly, or all in lower case.
fn fixed(context: &Context<'_>, directory: &str) -> Option<SubmittedScenario> {
    if directory == "interactive" && context.checker.has(Trait::InteractiveHalfKnown) {
        return None;
    }
    context.round.submission.scenarios().find(|scenario| {
        scenario.as_str() == directory || scenario.as_str().to_ascii_lowercase() == directory
    })
}

struct MonolithJudge<'a> {
    context: &'a Context<'a>,
    job: &'a MonolithJob,
    scenario: Option<SubmittedScenario>,
    /// Whether the conf files say that samples were issued equally often. Only set for checkers that read them.
    equal_issue: bool,
    outcome: MonolithOutcome,
}

/// The accuracy values that later checks need.
struct Accuracy {
    valid: bool,
    shown: String,
}

/// The values of a performance run that later checks need.
struct Performance {
    result: Number,
    inferred: bool,
    power: Option<f64>,
}

/// What the checks of compliance tests and measurements contribute to a row.
struct Assessed {
    /// Whether the compliance tests passed, or none are required.
    compliant: bool,
    /// The weight data types.
    weights: String,
}

impl MonolithJudge<'_> {
    fn run(&mut self) -> Result<(), Crash> {
        let Some(rules) = self.context.round.submission.benchmarks.get(&self.job.benchmark) else {
            return Ok(());
        };
        let closed = self.job.place.division != "open";
        let scenarios = rules.scenarios(&self.job.description.kind).unwrap_or_default();
        if closed && !self.scenario.is_some_and(|scenario| scenarios.has(scenario)) {
            self.fault("is a scenario that the benchmark does not have".to_owned());
            return Ok(());
        }
        let results = self.outcome.path.clone();
        let has_power = self.context.tree.exists(&format!("{results}/performance/power"));
        let Some(weights) = self.measurements(has_power)? else {
            return Ok(());
        };
        let Some(accuracy) = self.accuracy(rules, closed)? else {
            return Ok(());
        };
        let performance = self.performance(rules, has_power)?;
        let mut compliant = !closed;
        if closed {
            let mut notes = Vec::new();
            let run = self.run_of(rules, "");
            let checked = compliance::check(run, &self.job.place, &self.job.benchmark, &mut notes);
            let is_logged = self.context.checker.has(Trait::ComplianceLogged);
            for note in &mut notes {
                note.fatal &= !is_logged;
            }
            self.outcome.notes.append(&mut notes);
            compliant = checked?;
            if !compliant && !is_logged {
                self.outcome.value = None;
            }
        }
        let counts = self
            .outcome
            .value
            .as_deref()
            .is_some_and(|value| !summary::is_zero(value));
        if let (true, Some(performance)) = (counts, performance) {
            if accuracy.valid {
                self.row(
                    rules,
                    &accuracy.shown,
                    &performance,
                    Assessed { compliant, weights },
                )?;
            } else {
                self.outcome.value = None;
            }
        }
        Ok(())
    }

    fn note(&mut self, path: &str, text: String, fatal: bool) {
        let path = path.to_owned();
        self.outcome.notes.push(Note { path, text, fatal });
    }

    /// Adds and counts an error of the scenario itself.
    fn fault(&mut self, text: String) {
        self.outcome.errors += 1;
        let path = self.outcome.path.clone();
        self.note(&path, text, true);
    }

    fn run_of<'a>(&'a self, rules: &'a BenchmarkRules, directory: &'a str) -> MonolithRun<'a> {
        MonolithRun {
            context: self.context,
            rules,
            system: &self.job.description,
            division: &self.job.place.division,
            scenario: self.scenario,
            directory,
        }
    }

    /// Returns the weight data types, or `None` if the check of the scenario ends here.
    fn measurements(&mut self, has_power: bool) -> Result<Option<String>, Crash> {
        let directory = self.job.place.below("measurements");
        let fatal = self.context.checker.fails(OfficialCheck::Measurements);
        if !self.context.tree.exists(&directory) {
            self.outcome.errors += 1;
            self.outcome.failed_items.push(directory.clone());
            self.note(&directory, "there is no measurement directory".to_owned(), true);
            return Ok((!fatal).then(String::new));
        }
        let checked = measurements::check(self.context, &self.job.place, has_power, &mut self.outcome.notes)?;
        if self.context.checker.has(Trait::EqualIssueInConf) {
            self.equal_issue = equal_issue::in_conf(self.context, &self.job.place)?;
        }
        if checked.good {
            return Ok(Some(checked.weights));
        }
        self.outcome.errors += 1;
        if fatal {
            self.outcome.failed_items.push(directory);
            return Ok(None);
        }
        Ok(Some(checked.weights))
    }
}
