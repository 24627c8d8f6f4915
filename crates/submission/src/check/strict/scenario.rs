//! One scenario: its runs, their agreement, its measurements, tests and power.

use regatta_rules::round::{BenchmarkRules, Layout, SubmittedScenario};

use super::{
    Context, ResultRow, accuracy, agreement, endpoints,
    facts::{self, Facts},
    measurements, performance, power, result, summary, tests,
    walk::{Job, scenario_of},
};
use crate::check::{
    finding::{Findings, Severity},
    rules,
    run_log::RunLog,
};

/// What became of a scenario.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) findings: Findings,
    pub(super) results: Vec<ResultRow>,
    pub(super) facts: Option<Facts>,
}

/// A scenario while it is judged.
#[derive(Clone, Copy)]
pub(super) struct Case<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) job: &'a Job,
    pub(super) rules: &'a BenchmarkRules,
    /// The scenario that the directory stands for.
    pub(super) scenario: SubmittedScenario,
    /// `results/<system>/<benchmark>/<scenario>` of the submitter.
    pub(super) results: &'a str,
    /// Whether the endpoints harness ran it, and not LoadGen.
    pub(super) endpoints: bool,
}

impl Case<'_> {
    /// The scenario's directory below a part of the submission, such as `compliance`.
    pub(super) fn below(&self, part: &str) -> String {
        let Job {
            division,
            submitter,
            system,
            model,
            scenario,
            ..
        } = self.job;
        format!("{division}/{submitter}/{part}/{system}/{model}/{scenario}")
    }

    /// The submitter's directory.
    pub(super) fn home(&self) -> String {
        format!("{}/{}", self.job.division, self.job.submitter)
    }

    /// Whether parts lie beside the results.
    pub(super) fn classic(&self) -> bool {
        self.context.round.submission.layout == Layout::Classic
    }

    /// Whether the division has accuracy targets and compliance tests.
    pub(super) fn bound(&self) -> bool {
        self.job.division != "open"
    }
}

/// Judges a scenario.
pub(super) fn check(context: &Context<'_>, job: &Job) -> Outcome {
    let mut outcome = Outcome::default();
    let results = job.results();
    // A benchmark or scenario that the round does not have was found on the way here.
    let known = context
        .round
        .submission
        .benchmarks
        .get(&job.benchmark)
        .zip(scenario_of(&job.scenario));
    let Some((rules, scenario)) = known else {
        outcome.results.push(row(job, None, String::new(), false));
        return outcome;
    };
    let mut case = Case {
        context,
        job,
        rules,
        scenario,
        results: &results,
        endpoints: false,
    };
    case.endpoints = endpoints::is_one(&case);
    judge(&case, &mut outcome);
    outcome
}

fn judge(case: &Case<'_>, outcome: &mut Outcome) {
    let findings = &mut outcome.findings;
    let units = case.rules.unit(case.scenario).to_owned();
    if case.endpoints {
        let judged = endpoints::check(case, findings);
        outcome.facts = Some(facts::of(case, judged.as_ref().map(|judged| &judged.log)));
        let result = judged.and_then(|judged| judged.result);
        let accepted = result.is_some() && !case.job.tainted && findings.errors() == 0;
        outcome.results.push(row(case.job, result, units, accepted));
        return;
    }
    let run = format!("{}/performance/run_1", case.results);
    let performance = read_log(case, &run, findings);
    let accuracy_log = read_log(case, &format!("{}/accuracy", case.results), findings);
    measurements::check(case, findings);
    accuracy::check(case, accuracy_log.as_ref(), findings);
    let mut measured = None;
    if let Some(log) = &performance {
        performance::check(case, &run, log, performance::Purpose::Submission, findings);
        summary::check(case, &run, log, findings);
        measured = result::measured(case, &run, log, findings);
    }
    outcome.facts = Some(facts::of(case, performance.as_ref()));
    performance::files(case, &run, findings);
    agreement::check(case, performance.as_ref(), accuracy_log.as_ref(), findings);
    tests::check(case, performance.as_ref(), findings);
    let power = power::check(case, performance.as_ref(), findings);
    let accepted = measured.is_some() && !case.job.tainted && findings.errors() == 0;
    outcome.results.push(row(case.job, measured, units, accepted));
    outcome.results.extend(power.map(|(metric, units)| ResultRow {
        result: metric,
        units: units.to_owned(),
        power: true,
        ..row(case.job, None, String::new(), accepted)
    }));
}

fn row(job: &Job, result: Option<f64>, units: String, accepted: bool) -> ResultRow {
    ResultRow {
        division: job.division.clone(),
        submitter: job.submitter.clone(),
        system: job.system.clone(),
        model: job.model.clone(),
        scenario: scenario_of(&job.scenario)
            .map_or_else(|| job.scenario.clone(), |scenario| scenario.to_string()),
        result,
        units,
        power: false,
        accepted,
    }
}

/// Reads the detail log in `directory`; lines that do not read are findings, and the rest is judged.
pub(super) fn read_log(case: &Case<'_>, directory: &str, findings: &mut Findings) -> Option<RunLog> {
    let path = format!("{directory}/mlperf_log_detail.txt");
    let log = match RunLog::read(case.context.tree, &path) {
        Ok(log) => log,
        Err(error) => {
            let text = format!("cannot be read: {}", error.0);
            findings.error(rules::FILE_SET, &path, text, "add LoadGen's log of this run");
            return None;
        }
    };
    for bad in &log.unreadable {
        let text = format!("the line does not read: {}", bad.text);
        let mend = "put LoadGen's own log in its place; the official checker ends here";
        findings.error(rules::LOG, (path.as_str(), Some(bad.line)), text, mend);
    }
    if log.has_no_records() {
        findings.error(
            rules::LOG,
            &path,
            "holds no record",
            "put LoadGen's own log in its place",
        );
        return None;
    }
    if !log.begins_with_record && log.unreadable.is_empty() {
        let mend = "remove what stands before LoadGen's records; the official checker ends here";
        findings.add(
            Severity::Warning,
            rules::LOG,
            (path.as_str(), Some(1)),
            "the first line is no record",
            mend,
        );
    }
    Some(log)
}
