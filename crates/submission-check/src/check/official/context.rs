//! The common part of an official check: input and a parallel runner.

use regatta_catalogue::round::{Checker, Round};

use crate::{
    check::{parallel, place::ScenarioPlace},
    tree::Tree,
};

/// The input of every part of a check.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) tree: &'a Tree,
    pub(super) round: &'a Round,
    pub(super) checker: &'a Checker,
}

/// Runs jobs in parallel and returns their results in the jobs' order. `place` returns the scenario of a job.
pub(super) fn run_all<T: Send, J: Sync>(
    context: &Context<'_>,
    jobs: &[J],
    place: impl Fn(&J) -> &ScenarioPlace,
    work: impl Fn(&J) -> T + Sync,
) -> Vec<T> {
    let size = |job: &J| context.tree.size_below(&place(job).below("results"));
    parallel::map(jobs, size, work)
}
