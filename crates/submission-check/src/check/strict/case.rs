//! The input of the checks of one scenario.

use regatta_catalogue::round::{BenchmarkRules, Layout, SubmittedScenario};

use super::{context::StrictContext, walk::StrictJob};

/// One scenario of one benchmark, with the rules that apply to it.
#[derive(Clone, Copy)]
pub(super) struct Case<'a> {
    pub(super) context: &'a StrictContext<'a>,
    pub(super) job: &'a StrictJob,
    pub(super) rules: &'a BenchmarkRules,
    /// The scenario that the directory name denotes.
    pub(super) scenario: SubmittedScenario,
    /// The path `results/<system>/<benchmark>/<scenario>` of the submitter, from the submission's root.
    pub(super) results: &'a str,
    /// Whether the endpoints harness ran the scenario instead of LoadGen.
    pub(super) endpoints: bool,
}

impl Case<'_> {
    /// Returns whether the layout keeps measurements and compliance tests beside the results.
    pub(super) fn classic(&self) -> bool {
        self.context.round.submission.layout == Layout::Classic
    }

    /// Returns the directory of the measurement files.
    pub(super) fn measurements(&self) -> String {
        match self.classic() {
            true => self.job.place.below("measurements"),
            false => self.results.to_owned(),
        }
    }

    /// Returns whether the division has accuracy targets and compliance tests.
    pub(super) fn bound(&self) -> bool {
        self.job.place.division != "open"
    }

    /// Returns whether the result has a power measurement.
    pub(super) fn has_power(&self) -> bool {
        let directory = format!("{}/performance/power", self.results);
        self.context.tree.exists(&directory)
    }
}
