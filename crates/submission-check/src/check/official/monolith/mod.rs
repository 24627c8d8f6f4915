//! The checkers up to v5.1, which are one file each.
//!
//! They walk division, submitter, system, model and scenario, and check directories on the way.

mod compliance;
mod equal_issue;
mod hygiene;
mod measurements;
mod performance;
mod scenario;
mod system;
mod walk;

use std::collections::{BTreeMap, BTreeSet};

use regatta_catalogue::round::SubmittedScenario;
use regatta_types::Scenario;
use walk::Step;

use super::{Context, Note, Official, Verdict, crash::Crash, run_all, summary};

/// Checks the tree.
pub(super) fn check(context: &Context<'_>) -> Official {
    let walk = walk::walk(context);
    let jobs: Vec<_> = walk.steps.iter().flat_map(Step::jobs).collect();
    let outcomes = run_all(
        context,
        &jobs,
        |job| &job.place,
        |job| scenario::check(context, job),
    );
    let mut outcomes = outcomes.into_iter();
    let mut official = Official {
        checker: context.checker.clone(),
        verdict: Verdict::Accept,
        rows: Vec::new(),
        items: BTreeMap::new(),
        notes: Vec::new(),
        summary: Vec::new(),
    };
    let mut crash = None;
    for step in &walk.steps {
        match step {
            Step::Note(note) => official.notes.push(note.clone()),
            Step::Item(path) => {
                official.items.insert(path.clone(), None);
            }
            Step::Crash(reason) => crash = Some(reason.clone()),
            Step::Model(model) => {
                let outcomes = outcomes.by_ref().take(model.scenarios.len()).collect();
                crash = take_model(&mut official, model, outcomes);
            }
        }
        if crash.is_some() {
            break;
        }
    }
    official.verdict = match crash {
        Some(Crash(reason)) => Verdict::Crash(reason),
        None if summary::with_results(&official.items) == official.items.len() => Verdict::Accept,
        None => Verdict::Reject,
    };
    official.summary = summary::lines(context, &official.items, &official.rows, &official.verdict);
    official
}

/// Adds the outcomes of a model's scenarios in order. Returns the reason if the official program ends within them.
fn take_model(
    official: &mut Official,
    model: &walk::Model,
    outcomes: Vec<scenario::MonolithOutcome>,
) -> Option<Crash> {
    let mut errors = 0;
    let mut missing: BTreeSet<_> = model.required.iter().copied().collect();
    let mut online = false;
    let mut last = None;
    for outcome in outcomes {
        official.notes.extend(outcome.notes);
        if outcome.crash.is_some() {
            return outcome.crash;
        }
        errors += outcome.errors;
        if let Some(scenario) = outcome.passed {
            // Interactive is a Server run, and no benchmark requires it.
            if scenario != SubmittedScenario::Interactive {
                missing.remove(&scenario.run());
            }
            online |= scenario.run() == Scenario::Server;
        }
        official
            .items
            .extend(outcome.failed_items.into_iter().map(|path| (path, None)));
        last = Some(outcome.path.clone());
        official.items.insert(outcome.path, outcome.value);
        official.rows.extend(outcome.rows.into_iter().map(|mut row| {
            row.errors = errors;
            row
        }));
    }
    if model.closed && !missing.is_empty() {
        let names: Vec<_> = missing.iter().map(|scenario| scenario.as_str()).collect();
        official.items.insert(model.path.clone(), None);
        official.notes.push(Note {
            path: model.path.clone(),
            text: format!(
                "required scenarios are missing or not valid: {}",
                names.join(", ")
            ),
            fatal: true,
        });
        last = Some(model.path.clone());
    }
    // The official code attributes this error to the path that it handled last.
    if let Some(path) = last.filter(|_| model.closed && model.server_or_interactive && !online) {
        official.items.insert(path, None);
        official.notes.push(Note {
            path: model.path.clone(),
            text: "one of Server and Interactive is required".to_owned(),
            fatal: true,
        });
    }
    None
}
