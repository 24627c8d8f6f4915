//! Walks the tree down to models as the monolith does. It returns the monolith's own findings and the scenarios to check.

use std::collections::BTreeMap;

use regatta_catalogue::round::OfficialCheck;
use regatta_types::Scenario;
use serde_json::Value;

use super::{
    super::{Context, Note, crash::Crash, object},
    hygiene,
    system::{self, DescribedSystem},
};
use crate::check::place::{ScenarioPlace, SystemPlace};

/// One step of the walk, in order.
#[derive(Debug)]
pub(super) enum Step {
    /// A message about a path.
    Note(Note),
    /// A path without a result.
    Item(String),
    /// The reason why the official program ends here.
    Crash(Crash),
    /// The scenarios of a model.
    Model(Model),
}

/// A model's directory.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) path: String,
    /// Whether the division is closed or network.
    pub(super) closed: bool,
    pub(super) required: Vec<Scenario>,
    /// Whether Server or Interactive is required.
    pub(super) server_or_interactive: bool,
    pub(super) scenarios: Vec<MonolithJob>,
}

/// A scenario to check.
#[derive(Debug)]
pub(super) struct MonolithJob {
    pub(super) place: ScenarioPlace,
    /// The official name of the benchmark.
    pub(super) benchmark: String,
    pub(super) description: DescribedSystem,
}

impl Step {
    /// Returns the scenarios of this step.
    pub(super) fn jobs(&self) -> impl Iterator<Item = &MonolithJob> {
        let jobs = match self {
            Self::Model(model) => model.scenarios.as_slice(),
            _ => &[],
        };
        jobs.iter()
    }
}

/// The steps through a tree.
#[derive(Debug, Default)]
pub(super) struct MonolithWalk {
    pub(super) steps: Vec<Step>,
}

/// Walks the tree.
pub(super) fn walk(context: &Context<'_>) -> MonolithWalk {
    let mut walk = MonolithWalk::default();
    for division in context.tree.directories("").unwrap_or_default() {
        if !["closed", "open", "network"].contains(&division) {
            if ![".git", ".github", "assets"].contains(&division) {
                walk.note(division, "is not a division".to_owned(), false);
            }
            continue;
        }
        if let Some(fault) = hygiene::root(context) {
            walk.fail("root", "root", fault);
            break;
        }
        if let Some(fault) = hygiene::division(context, division) {
            walk.fail(division, division, fault);
            continue;
        }
        for submitter in context.tree.directories(division).unwrap_or_default() {
            walk.submitter(context, division, submitter);
        }
    }
    walk
}

impl MonolithWalk {
    fn note(&mut self, path: &str, text: String, fatal: bool) {
        let path = path.to_owned();
        self.steps.push(Step::Note(Note { path, text, fatal }));
    }

    fn fail(&mut self, item: &str, path: &str, text: String) {
        self.note(path, text, true);
        self.steps.push(Step::Item(item.to_owned()));
    }

    fn submitter(&mut self, context: &Context<'_>, division: &str, submitter: &str) {
        let home = format!("{division}/{submitter}");
        let results = format!("{home}/results");
        if !context.tree.exists(&results) {
            return;
        }
        match hygiene::submitter(context, &home) {
            Err(crash) => return self.steps.push(Step::Crash(crash)),
            Ok(Some(fault)) => return self.fail(&home, &fault.path, fault.text),
            Ok(None) => {}
        }
        let own = if division == "open" && context.checker.looks_at(OfficialCheck::ModelMapping) {
            match own_names(context, &format!("{home}/model_mapping.json")) {
                Ok(names) => names,
                Err(crash) => return self.steps.push(Step::Crash(crash)),
            }
        } else {
            BTreeMap::new()
        };
        match hygiene::unmatched(context, &home) {
            Err(crash) => return self.steps.push(Step::Crash(crash)),
            Ok(faults) => {
                for fault in faults {
                    self.fail(&results, &fault.path, fault.text);
                }
            }
        }
        if let Some(fault) = hygiene::calibration(context, division, &home) {
            self.fail(&results, &home, fault);
        }
        let Some(systems) = context.tree.directories(&results) else {
            return self
                .steps
                .push(Step::Crash(Crash(format!("{results} is not a directory"))));
        };
        for system in systems {
            let place = SystemPlace {
                division,
                submitter,
                system,
            };
            self.system(context, place, &own);
        }
    }

    fn system(&mut self, context: &Context<'_>, place: SystemPlace<'_>, own: &BTreeMap<String, String>) {
        let path = place.results();
        let description = place.description();
        if !context.tree.exists(&description) {
            return self.fail(&path, &description, "there is no system description".to_owned());
        }
        let mut notes = Vec::new();
        let checked = system::check(context, place, &mut notes);
        self.steps.extend(notes.into_iter().map(Step::Note));
        let description = match checked {
            Err(crash) => return self.steps.push(Step::Crash(crash)),
            Ok(None) => return self.steps.push(Step::Item(path)),
            Ok(Some(system)) => system,
        };
        for model in context.tree.directories(&path).unwrap_or_default() {
            self.model(context, place, model, (&description, own));
        }
    }

    fn model(
        &mut self,
        context: &Context<'_>,
        place: SystemPlace<'_>,
        model: &str,
        (description, own): (&DescribedSystem, &BTreeMap<String, String>),
    ) {
        let rules = &context.round.submission;
        let path = format!("{}/{model}", place.results());
        let benchmark = rules.model_of(model, own).to_owned();
        let closed = place.division != "open";
        if closed && !rules.knows(&benchmark) {
            return self.fail(
                &path,
                &path,
                format!("{benchmark} is not a benchmark of this round"),
            );
        }
        let allowed = rules
            .benchmarks
            .get(&benchmark)
            .and_then(|rules| rules.scenarios(&description.kind));
        let Some(allowed) = allowed else {
            let kind = &description.kind;
            let text = format!("{benchmark} is not a benchmark of this round for a system of type {kind}");
            return self.fail(&path, &path, text);
        };
        let scenarios = context.tree.directories(&path).unwrap_or_default();
        let scenarios = scenarios.into_iter().map(|scenario| MonolithJob {
            place: place.scenario(model, scenario),
            benchmark: benchmark.clone(),
            description: description.clone(),
        });
        self.steps.push(Step::Model(Model {
            path,
            closed,
            required: allowed.required.to_vec(),
            server_or_interactive: allowed.server_or_interactive(),
            scenarios: scenarios.collect(),
        }));
    }
}

/// Returns the submitter's own names of benchmarks. The map is empty if the file does not exist.
fn own_names(context: &Context<'_>, path: &str) -> Result<BTreeMap<String, String>, Crash> {
    if !context.tree.exists(path) {
        return Ok(BTreeMap::new());
    }
    let names = object::read(context, path)?;
    let names = names.into_iter().filter_map(|(name, model)| match model {
        Value::String(model) => Some((name, model)),
        _ => None,
    });
    Ok(names.collect())
}
