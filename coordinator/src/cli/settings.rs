//! `regatta settings`: the engine settings as they are declared, for people and for programs. Needs no workspace.

use clap::Subcommand;
use regatta_types::engine_settings::{SETTINGS, Setting, ValueType};
use regatta_types::{ExitCode, Scenario, documents::EngineKind};
use serde_json::{Value, json};

use super::Context;
use crate::{exit::CommandResult, tables};
use regatta_lab_runs::vocabulary;

/// `settings ...`
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List the settings with type, range, default, engines and scenarios
    List(List),
}

/// Flags of `settings list`.
#[derive(Debug, clap::Args)]
pub(super) struct List {
    /// List only the settings that this engine accepts
    #[arg(long, value_parser = vocabulary::engine(), ignore_case = true)]
    engine: Option<EngineKind>,
    /// List only the settings that apply in this scenario
    #[arg(long, value_parser = vocabulary::scenario(), ignore_case = true)]
    scenario: Option<Scenario>,
}

impl List {
    fn shows(&self, setting: &Setting) -> bool {
        let of_engine = self.engine.is_none_or(|engine| setting.is_accepted_by(engine));
        let of_scenario = self
            .scenario
            .is_none_or(|scenario| setting.scenarios.contains(&scenario));
        of_engine && of_scenario
    }
}

pub(super) fn run(command: &Command, context: &Context) -> CommandResult {
    let Command::List(list) = command;
    let settings: Vec<&Setting> = SETTINGS.iter().filter(|setting| list.shows(setting)).collect();
    let documents: Vec<Value> = settings.iter().map(|setting| document(setting)).collect();
    context.print(&json!({ "settings": documents }), || tables::settings(&settings))?;
    Ok(ExitCode::Success)
}

/// Returns one setting, for programs.
fn document(setting: &Setting) -> Value {
    let words =
        |engines: &[EngineKind]| -> Vec<&str> { engines.iter().map(|engine| engine.as_str()).collect() };
    let scenarios: Vec<&str> = setting
        .scenarios
        .iter()
        .map(|scenario| scenario.as_str())
        .collect();
    json!({
        "name": setting.name,
        "type": setting.value_type.name(),
        "range": range(&setting.value_type),
        "default": setting.default,
        "engines": words(setting.engines),
        "ignored_by": words(setting.ignored_by),
        "scenarios": scenarios,
        "source": setting.source.as_str(),
        "doc": setting.doc,
    })
}

fn range(value_type: &ValueType) -> Value {
    match value_type {
        ValueType::Integer { min, max, .. } => json!({ "min": min, "max": max }),
        ValueType::Number { min, max, .. } => json!({ "min": min, "max": max }),
        ValueType::Boolean => json!({ "values": ["true", "false"] }),
        ValueType::Word(words) => json!({ "values": words }),
        ValueType::Text(form) => json!({ "form": form }),
    }
}
