//! Walks the tree to the scenarios as the package does.

use std::{collections::BTreeMap, sync::Arc};

use regatta_catalogue::round::SubmittedScenario;
use serde_json::{Map, Value};

use super::super::{Context, Note, crash::Crash, object};
use crate::check::place::{ScenarioPlace, SystemPlace};

/// A scenario to check.
#[derive(Debug)]
pub(super) struct PackageJob {
    pub(super) place: ScenarioPlace,
    pub(super) benchmark: String,
    pub(super) description: Arc<Map<String, Value>>,
    /// The error in the model's set of scenarios. It fails every scenario of the model.
    pub(super) set_fault: Option<String>,
}

/// The scenarios to check, and the reason if the official program ends while it searches for them.
#[derive(Debug, Default)]
pub(super) struct PackageWalk {
    pub(super) jobs: Vec<PackageJob>,
    pub(super) notes: Vec<Note>,
    pub(super) crash: Option<Crash>,
}

/// Walks the tree.
pub(super) fn walk(context: &Context<'_>) -> PackageWalk {
    let mut walk = PackageWalk::default();
    walk.crash = walk.divisions(context).err();
    walk
}

impl PackageWalk {
    fn divisions(&mut self, context: &Context<'_>) -> Result<(), Crash> {
        for division in context.tree.directories("").unwrap_or_default() {
            if !["closed", "open", "network"].contains(&division) {
                continue;
            }
            for submitter in context.tree.directories(division).unwrap_or_default() {
                self.submitter(context, division, submitter)?;
            }
        }
        Ok(())
    }

    fn submitter(&mut self, context: &Context<'_>, division: &str, submitter: &str) -> Result<(), Crash> {
        let home = format!("{division}/{submitter}");
        let results = format!("{home}/results");
        let mapping = format!("{home}/model_mapping.json");
        let mut own = BTreeMap::new();
        if division == "open" && context.tree.exists(&mapping) {
            let names = object::read(context, &mapping)?;
            own.extend(names.into_iter().filter_map(|(name, model)| match model {
                Value::String(model) => Some((name, model)),
                _ => None,
            }));
        }
        let systems = context
            .tree
            .directories(&results)
            .ok_or_else(|| Crash(format!("{results} is not a directory")))?;
        for system in systems {
            let place = SystemPlace {
                division,
                submitter,
                system,
            };
            self.system(context, place, &own)?;
        }
        Ok(())
    }

    fn system(
        &mut self,
        context: &Context<'_>,
        place: SystemPlace<'_>,
        own: &BTreeMap<String, String>,
    ) -> Result<(), Crash> {
        let description = place.description();
        if !context.tree.exists(&description) {
            return Err(Crash(format!("{description} is missing")));
        }
        let description = Arc::new(object::read(context, &description)?);
        let path = place.results();
        for model in context.tree.directories(&path).unwrap_or_default() {
            let benchmark = context.round.submission.model_of(model, own);
            let scenarios = context
                .tree
                .directories(&format!("{path}/{model}"))
                .unwrap_or_default();
            let set_fault = if place.division == "open" {
                None
            } else {
                let kind = description.get("system_type").and_then(Value::as_str);
                set_fault(context, benchmark, kind.unwrap_or_default(), &scenarios)?
            };
            self.jobs.extend(scenarios.into_iter().map(|scenario| PackageJob {
                place: place.scenario(model, scenario),
                benchmark: benchmark.to_owned(),
                description: Arc::clone(&description),
                set_fault: set_fault.clone(),
            }));
        }
        Ok(())
    }
}

/// Describes missing and unknown scenarios of a model. The error is the reason why the official program ends.
fn set_fault(
    context: &Context<'_>,
    benchmark: &str,
    kind: &str,
    scenarios: &[&str],
) -> Result<Option<String>, Crash> {
    if !["datacenter", "edge", "datacenter,edge", "edge,datacenter"].contains(&kind) {
        return Err(Crash(format!("system_type `{kind}` is none")));
    }
    let required_scenarios = context
        .round
        .submission
        .benchmarks
        .get(benchmark)
        .and_then(|rules| rules.scenarios(kind))
        .ok_or_else(|| {
            Crash(format!(
                "{benchmark} has no scenarios for a system of type {kind}"
            ))
        })?;
    let present: Vec<Option<SubmittedScenario>> = scenarios.iter().map(|name| name.parse().ok()).collect();
    let there = |scenario: SubmittedScenario| present.contains(&Some(scenario));
    let missing = required_scenarios
        .required
        .iter()
        .filter(|&&scenario| !there(scenario.into()))
        .map(|scenario| format!("{scenario} is missing"));
    let unknown = scenarios
        .iter()
        .zip(&present)
        .filter(|(_, scenario)| !scenario.is_some_and(|scenario| required_scenarios.has(scenario)))
        .map(|(directory, _)| format!("{directory} is not expected"));
    let online = there(SubmittedScenario::Server) || there(SubmittedScenario::Interactive);
    let neither = (required_scenarios.server_or_interactive() && !online)
        .then(|| "one of Server and Interactive is missing".to_owned());
    let faults: Vec<_> = missing.chain(unknown).chain(neither).collect();
    Ok((!faults.is_empty()).then(|| faults.join(", ")))
}
