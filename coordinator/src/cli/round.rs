//! `regatta round`: the rounds of MLPerf Inference that `--round` takes. Needs no workspace, and respects its own files.

use clap::Subcommand;
use regatta_catalogue::{
    catalogue::{BenchmarkCatalogue, RoundCatalogue},
    round::Round,
};
use regatta_types::ExitCode;
use serde_json::{Value, json};

use super::Context;
use crate::{
    exit::{CommandResult, Failure},
    tables,
};
use regatta_lab_store::workspace::Workspace;

/// `round ...`
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List the rounds, oldest first, with their audits and the benchmarks that Regatta runs
    List,
}

pub(super) fn run(command: &Command, context: &Context) -> CommandResult {
    let Command::List = command;
    let configs = context.open_if_there()?.as_ref().map(Workspace::configs);
    let benchmarks = BenchmarkCatalogue::read(configs.as_deref()).map_err(Failure::usage)?;
    let rounds = RoundCatalogue::read(configs.as_deref()).map_err(Failure::usage)?;
    let rounds = rounds.all().map_err(Failure::usage)?;
    let known = |round: &Round| -> Vec<String> {
        let all = benchmarks.all().into_iter();
        let of_round = all.filter(|benchmark| round.rules_of(benchmark).is_some());
        of_round.map(|benchmark| benchmark.name.clone()).collect()
    };
    let seconds = |round: &Round| round.submission.min_duration_ms / 1000;
    let audits = |round: &Round| round.audits.keys().cloned().collect::<Vec<_>>();
    let documents: Vec<Value> = rounds
        .iter()
        .map(|round| {
            json!({
                "name": round.name,
                "min_duration_s": seconds(round),
                "audits": audits(round),
                "benchmarks": known(round),
            })
        })
        .collect();
    context.print(&json!({ "rounds": documents }), || {
        let rows = rounds.iter().map(|round| {
            [
                round.name.clone(),
                format!("{} s", seconds(round)),
                audits(round).join(", "),
                known(round).join(", "),
            ]
        });
        tables::plain(["round", "shortest run", "audits", "benchmarks"], rows)
    })?;
    Ok(ExitCode::Success)
}
