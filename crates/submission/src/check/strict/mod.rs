//! What the rules ask, whatever the official checkers look at: recomputed from the logs wherever they allow it.
//!
//! Every scenario is judged for itself, so that one fault hides no other.

mod accuracy;
mod accuracy_figures;
mod agreement;
mod endpoints;
mod facts;
mod figures;
mod generated;
mod hygiene;
mod libcxx;
mod logged_run;
mod measurements;
mod own_run;
mod performance;
mod power;
mod prescribed;
mod records;
mod result;
mod scenario;
mod settings;
mod summary;
mod system;
mod test_responses;
mod tests;
mod walk;

pub use facts::{Facts, Latency, Metric};
use regatta_config::round::{Checker, Engine, Layout, OfficialCheck, Round};
use serde::Serialize;

use super::{
    finding::{Finding, Findings, Severity},
    parallel,
};
use crate::tree::Tree;

/// A result of a submission, as the JSON and the page give it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResultRow {
    /// `closed`, `open` or `network`.
    pub division: String,
    /// The submitter's directory.
    pub submitter: String,
    /// The system's directory.
    pub system: String,
    /// The benchmark's directory.
    pub model: String,
    /// The scenario.
    pub scenario: String,
    /// The result; `None` where there is none.
    pub result: Option<f64>,
    /// Its units.
    pub units: String,
    /// Whether this is the power metric beside a result.
    pub power: bool,
    /// Whether it is in order.
    pub accepted: bool,
}

/// The outcome of a strict check.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Results in the order of paths.
    pub results: Vec<ResultRow>,
    /// Findings, errors first.
    pub findings: Vec<Finding>,
    /// What the logs of each scenario say beside its result.
    pub facts: Vec<Facts>,
}

impl Report {
    /// Whether nothing stands against the submission.
    #[must_use]
    pub fn passes(&self) -> bool {
        !self.results.is_empty()
            && self
                .findings
                .iter()
                .all(|finding| finding.severity != Severity::Error)
    }
}

/// Judges `tree` by the rules of `round`.
#[must_use]
pub fn strict(tree: &Tree, round: &Round) -> Report {
    let sets = generated::LoadedSets::default();
    let context = Context {
        tree,
        round,
        sets: &sets,
    };
    let mut findings = Findings::default();
    hygiene::root(&context, &mut findings);
    let jobs = walk::walk(&context, &mut findings);
    let mut report = Report::default();
    let size = |job: &walk::Job| tree.size_below(&job.place.below("results"));
    let mut outcomes = parallel::map(&jobs, size, |job| scenario::check(&context, job));
    own_run::check(&jobs, &mut outcomes);
    for outcome in outcomes {
        findings.extend(outcome.findings);
        report.results.extend(outcome.results);
        report.facts.extend(outcome.facts);
    }
    if report.results.is_empty() {
        let rule = super::rules::LAYOUT;
        let mend = "a submission has <division>/<submitter>/results/<system>/<benchmark>/<scenario>";
        findings.error(rule, ".", "there are no results", mend);
    }
    report.findings = findings.into_list();
    report
}

/// What every part of the check looks at.
#[derive(Debug, Clone, Copy)]
struct Context<'a> {
    tree: &'a Tree,
    round: &'a Round,
    sets: &'a generated::LoadedSets,
}

impl Context<'_> {
    /// What is said of a file that could not be read.
    fn unread(&self, path: &str, error: impl std::fmt::Display) -> String {
        match self.tree.get(path) {
            None => "is missing".to_owned(),
            Some(_) => format!("cannot be read: {error}"),
        }
    }

    /// The severity of a file too many beside a result: the monoliths compare the files of its directories, the package since
    /// v6.0 does so for tests and power only.
    fn file_set_severity(&self) -> Severity {
        match self.round.submission.layout {
            Layout::Classic => Severity::Error,
            Layout::ResultsOnly => Severity::Warning,
        }
    }

    /// The severity of a rule that came into force with some round: a warning before it.
    fn since(&self, check: OfficialCheck) -> Severity {
        let before = |checker: &Checker| checker.engine == Engine::Monolith && !checker.looks_at(check);
        match self.round.submission.checkers.first() {
            Some(checker) if before(checker) => Severity::Warning,
            _ => Severity::Error,
        }
    }
}
