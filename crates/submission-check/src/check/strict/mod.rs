//! Checks a submission tree by the rules themselves, including those that the official checkers do not check.
//!
//! Values are recomputed from the logs wherever the logs allow it. Each scenario is checked independently, so that one error does
//! not hide another.

mod accelerators;
mod accuracy;
mod accuracy_figures;
mod agreement;
mod case;
mod compliance_tests;
mod context;
mod endpoints;
mod facts;
mod figures;
mod generated;
mod hygiene;
mod libcxx;
mod loaded_sets;
mod loadgen_build;
mod loadgen_verdict;
mod logged_run;
mod measurements;
mod own_run;
mod performance;
mod power;
mod prescribed;
mod read_log;
mod records;
mod report;
mod required_amounts;
mod result;
mod run_identity;
mod scenario;
mod settings;
mod shared_hashes;
mod stated_hash;
mod submitted_confs;
mod summary;
mod system;
mod test_responses;
mod test_settings;
mod walk;

use context::StrictContext;
pub use facts::{Facts, Latency, Metric};
use loaded_sets::LoadedSets;
use regatta_catalogue::round::Round;
pub use report::{ResultRow, StrictReport};

use super::{finding::Findings, parallel};
use crate::tree::Tree;

/// Checks `tree` by the rules of `round`.
#[must_use]
pub fn strict(tree: &Tree, round: &Round) -> StrictReport {
    let sets = LoadedSets::default();
    let context = StrictContext {
        tree,
        round,
        sets: &sets,
    };
    let mut findings = Findings::default();
    hygiene::root(&context, &mut findings);
    let jobs = walk::walk(&context, &mut findings);
    let mut report = StrictReport::default();
    let size = |job: &walk::StrictJob| tree.size_below(&job.place.below("results"));
    let mut outcomes = parallel::map(&jobs, size, |job| scenario::check(&context, job));
    own_run::check(&jobs, &mut outcomes);
    shared_hashes::check(&mut outcomes);
    for outcome in outcomes {
        findings.extend(outcome.findings);
        report.results.extend(outcome.results);
        report.facts.extend(outcome.facts);
    }
    if report.results.is_empty() {
        let rule = super::rules::LAYOUT;
        let fix = "a submission has <division>/<submitter>/results/<system>/<benchmark>/<scenario>";
        findings.error(rule, ".", "there are no results", fix);
    }
    report.findings = findings.into_list();
    report
}
