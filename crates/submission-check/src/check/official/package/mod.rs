//! The checker since v6.0, which is a Python package.
//!
//! It loads and checks each scenario in turn and writes all rows at the end. A traceback while loading therefore leaves no rows.

mod accuracy;
mod compliance;
mod endpoints;
mod faults;
mod loaded;
mod measurements;
mod performance;
mod scenario;
mod system;
mod walk;

use std::collections::BTreeMap;

use faults::{Faults, raised};

use super::{Context, Official, Verdict, crash::Crash, run_all, summary};

/// Checks the tree.
pub(super) fn check(context: &Context<'_>) -> Official {
    let walk = walk::walk(context);
    let outcomes = run_all(
        context,
        &walk.jobs,
        |job| &job.place,
        |job| scenario::check(context, job),
    );
    let mut official = Official {
        checker: context.checker.clone(),
        verdict: Verdict::Accept,
        rows: Vec::new(),
        items: BTreeMap::new(),
        notes: walk.notes,
        summary: Vec::new(),
    };
    let mut crash = None;
    for outcome in outcomes {
        official.notes.extend(outcome.notes);
        if outcome.crash.is_some() {
            crash = outcome.crash;
            break;
        }
        official.items.insert(outcome.path, outcome.value);
        official.rows.extend(outcome.rows);
    }
    let crash = crash.or(walk.crash);
    official.verdict = match crash {
        Some(Crash(reason)) => {
            official.rows.clear();
            Verdict::Crash(reason)
        }
        None if summary::with_results(&official.items) == official.items.len() => Verdict::Accept,
        None => Verdict::Reject,
    };
    official.summary = summary::lines(context, &official.items, &official.rows, &official.verdict);
    official
}
