//! `regatta system`: the systems that `run --system` takes. Needs no workspace, and respects its own files.

use std::collections::BTreeSet;

use clap::Subcommand;
use regatta_catalogue::{catalogue::SystemCatalogue, system::System};
use regatta_types::ExitCode;
use serde_json::{Value, json};

use super::Context;
use crate::{
    exit::{CommandResult, Failure},
    tables,
};
use regatta_lab_store::workspace::Workspace;

/// `system ...`
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List the systems with their boards and benchmarks
    List,
}

pub(super) fn run(command: &Command, context: &Context) -> CommandResult {
    let Command::List = command;
    let configs = context.open_if_there()?.as_ref().map(Workspace::configs);
    let systems = SystemCatalogue::read(configs.as_deref()).map_err(Failure::usage)?;
    let documents: Vec<Value> = systems
        .all()
        .map(|(file, system)| document(file, system))
        .collect();
    context.print(&json!({ "systems": documents }), || {
        let rows = systems.all().map(|(_, system)| {
            [
                system.name.clone(),
                system.title.clone(),
                system.board.modules.join(", "),
                words(benchmarks(system)),
                words(power(system)),
            ]
        });
        tables::plain(["system", "board", "modules", "benchmarks", "power"], rows)
    })?;
    Ok(ExitCode::Success)
}

fn document(file: &str, system: &System) -> Value {
    json!({
        "name": system.name,
        "title": system.title,
        "file": file,
        "modules": system.board.modules,
        "benchmarks": benchmarks(system),
        "power": power(system),
    })
}

fn benchmarks(system: &System) -> BTreeSet<&str> {
    system.runs.iter().map(|run| run.benchmark.as_str()).collect()
}

fn power(system: &System) -> BTreeSet<&'static str> {
    system.runs.iter().map(|run| run.power.as_str()).collect()
}

fn words(words: BTreeSet<&str>) -> String {
    words.into_iter().collect::<Vec<_>>().join(", ")
}
