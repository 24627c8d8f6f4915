//! Walks from the tree's root to the scenarios and checks submitters, systems and models on the way.

use std::{collections::BTreeMap, sync::Arc};

use regatta_catalogue::round::SubmittedScenario;
use serde_json::Value;

use super::{
    StrictContext, hygiene,
    system::{self, SystemProperties},
};
use crate::check::{
    finding::Findings,
    place::{ScenarioPlace, SystemPlace},
    rules,
};

/// A scenario to check.
#[derive(Debug)]
pub(super) struct StrictJob {
    pub(super) place: ScenarioPlace,
    /// The official name of the benchmark.
    pub(super) benchmark: String,
    pub(super) description: Arc<SystemProperties>,
    /// Whether the scenario's system or model has an error.
    pub(super) tainted: bool,
}

/// Returns the scenario that a directory name denotes.
pub(super) fn scenario_of(directory: &str) -> Option<SubmittedScenario> {
    directory.parse().ok()
}

/// Walks the tree, adds the findings above scenario level, and returns the scenarios to check.
pub(super) fn walk(context: &StrictContext<'_>, findings: &mut Findings) -> Vec<StrictJob> {
    let mut jobs = Vec::new();
    for division in ["closed", "open", "network"] {
        for submitter in context.tree.directories(division).unwrap_or_default() {
            let home = format!("{division}/{submitter}");
            if !context.tree.is_directory(&format!("{home}/results")) {
                let fix = "add results, or remove the submitter";
                findings.warning(rules::LAYOUT, &home, "has no results", fix);
                continue;
            }
            hygiene::submitter(context, &home, division, findings);
            let own = own_names(context, division, &home, findings);
            for system in context
                .tree
                .directories(&format!("{home}/results"))
                .unwrap_or_default()
            {
                let place = SystemPlace {
                    division,
                    submitter,
                    system,
                };
                walk_system(context, place, &own, (findings, &mut jobs));
            }
        }
    }
    jobs
}

fn walk_system(
    context: &StrictContext<'_>,
    place: SystemPlace<'_>,
    own: &BTreeMap<String, String>,
    (findings, jobs): (&mut Findings, &mut Vec<StrictJob>),
) {
    let before = findings.errors();
    let system = Arc::new(system::check(context, place, findings));
    let tainted = findings.errors() > before;
    let path = place.results();
    for model in context.tree.directories(&path).unwrap_or_default() {
        let before = findings.errors();
        let path = format!("{path}/{model}");
        let benchmark = context.round.submission.model_of(model, own).to_owned();
        let scenarios = context.tree.directories(&path).unwrap_or_default();
        check_model(
            context,
            (&path, &benchmark),
            (place.division, &system),
            &scenarios,
            findings,
        );
        let tainted = tainted || findings.errors() > before;
        jobs.extend(scenarios.into_iter().map(|scenario| StrictJob {
            place: place.scenario(model, scenario),
            benchmark: benchmark.clone(),
            description: Arc::clone(&system),
            tainted,
        }));
    }
}

/// Checks that the round has the benchmark, and that exactly the allowed and required scenarios exist.
fn check_model(
    context: &StrictContext<'_>,
    (path, benchmark): (&str, &str),
    (division, system): (&str, &SystemProperties),
    scenarios: &[&str],
    findings: &mut Findings,
) {
    let submission = &context.round.submission;
    let round = &context.round.name;
    if !submission.knows(benchmark) {
        let text = format!("`{benchmark}` is not a benchmark of {round}");
        let fix = match stricter_variant(context, benchmark) {
            Some(stricter) => format!("remove it: the round only has {stricter}"),
            None => {
                let fix = "name the directory after the benchmark, or map it in open/<submitter>/model_mapping.json";
                fix.to_owned()
            }
        };
        return findings.error(rules::BENCHMARK, path, text, fix);
    }
    let rules_of = submission.benchmarks.get(benchmark);
    let Some(allowed) = rules_of.and_then(|rules| rules.scenarios(&system.kind)) else {
        let text = format!(
            "{round} has no `{benchmark}` for systems of type `{}`",
            system.kind
        );
        return findings.error(rules::BENCHMARK, path, text, "remove it, or fix system_type");
    };
    if division == "open" {
        return;
    }
    let there = |scenario: SubmittedScenario| {
        let mut present = scenarios.iter();
        present.any(|&directory| scenario_of(directory) == Some(scenario))
    };
    for &scenario in allowed.required {
        if !there(scenario.into()) {
            let text = format!("the required scenario {scenario} is missing");
            let fix = "run it, or infer it where the rules allow it";
            findings.error(rules::SCENARIOS, path, text, fix);
        }
    }
    let online = there(SubmittedScenario::Server) || there(SubmittedScenario::Interactive);
    if allowed.server_or_interactive() && !online {
        let text = "one of the scenarios Server and Interactive is required";
        findings.error(rules::SCENARIOS, path, text, "run either");
    }
    for directory in scenarios {
        let path = format!("{path}/{directory}");
        match scenario_of(directory) {
            Some(scenario) if allowed.has(scenario) => {}
            _ => {
                let text = format!("`{directory}` is not a scenario of {benchmark} on this system");
                findings.error(rules::SCENARIOS, &path, text, "remove it");
            }
        }
    }
}

/// Returns the round's stricter variant of a benchmark that the round does not have. The official preprocessing copies its results
/// to the variant that the round has dropped.
fn stricter_variant(context: &StrictContext<'_>, benchmark: &str) -> Option<String> {
    let submission = &context.round.submission;
    let rule = submission.lower_accuracy.as_ref()?;
    let stricter = format!("{}{}", benchmark.strip_suffix(rule.to.as_str())?, rule.from);
    submission.knows(&stricter).then_some(stricter)
}

/// Returns the entries of `model_mapping.json` in the open division; the map is empty in other divisions.
fn own_names(
    context: &StrictContext<'_>,
    division: &str,
    home: &str,
    findings: &mut Findings,
) -> BTreeMap<String, String> {
    let path = format!("{home}/model_mapping.json");
    if division != "open" || !context.tree.exists(&path) {
        return BTreeMap::new();
    }
    let Some(json) = system::object(context, &path, rules::BENCHMARK, findings) else {
        return BTreeMap::new();
    };
    let names = json.into_iter().filter_map(|(name, model)| match model {
        Value::String(model) => Some((name, model)),
        _ => None,
    });
    names.collect()
}
