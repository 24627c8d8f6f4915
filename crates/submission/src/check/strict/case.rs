//! A scenario under judgement.

use regatta_config::round::{BenchmarkRules, Layout, SubmittedScenario};

use super::{context::Context, walk::Job};

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
    /// Whether the layout has its measurements and tests beside the results.
    pub(super) fn classic(&self) -> bool {
        self.context.round.submission.layout == Layout::Classic
    }

    /// Whether the division has accuracy targets and compliance tests.
    pub(super) fn bound(&self) -> bool {
        self.job.place.division != "open"
    }

    /// Whether power was measured beside the result.
    pub(super) fn has_power(&self) -> bool {
        let directory = format!("{}/performance/power", self.results);
        self.context.tree.exists(&directory)
    }
}
