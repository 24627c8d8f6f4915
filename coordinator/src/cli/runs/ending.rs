//! `regatta runs abort` and `runs give-up`: end runs that go on, and runs whose files never arrive.

use regatta_text::escape;
use regatta_types::{RunId, documents::RunPhase};
use serde_json::json;

use super::super::{Context, confirm::confirm, context::tell, lookup};
use crate::{
    exit::{self, CommandResult, Failure},
    store::{RunRow, Store},
    workspace::Workspace,
};

/// Flags of `runs abort`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct AbortArgs {
    /// Ids, their beginnings or ends, or `last`
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<String>,
}

/// Flags of `runs give-up`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct GiveUpArgs {
    /// Ids, their beginnings or ends, or `last`
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<String>,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

/// Requests the end of runs.
pub(super) fn abort(
    args: &AbortArgs,
    context: &Context,
    workspace: &Workspace,
    store: &Store,
) -> CommandResult {
    let rows = lookup::runs(store, &args.runs)?;
    let mut aborted = Vec::new();
    let mut ended = Vec::new();
    for row in &rows {
        if store.request_abort(row.id, "aborted by the user")? {
            aborted.push(row.id);
        } else {
            ended.push(row.id);
        }
    }
    if aborted.is_empty() {
        return Err(match ended.as_slice() {
            [one] => Failure::misuse(format!("run {one} has ended already")),
            _ => Failure::misuse("these runs have all ended already"),
        });
    }
    if !workspace.is_served() {
        tell("no coordinator serves this workspace: devices are told when `regatta serve` runs");
    }
    context.print(&json!({ "aborted": aborted, "ended": ended }), || {
        let lines = aborted.iter().map(|run| format!("run {run} is asked to end"));
        let rest = ended.iter().map(|run| format!("run {run} has ended already"));
        lines.chain(rest).collect::<Vec<_>>().join("\n")
    })?;
    Ok(exit::OK)
}

/// Gives up the files that have not arrived, so that the device's next run can begin.
pub(super) fn give_up(
    args: &GiveUpArgs,
    context: &Context,
    workspace: &Workspace,
    store: &Store,
) -> CommandResult {
    let rows = lookup::runs(store, &args.runs)?;
    let mut losses = Vec::new();
    for row in &rows {
        losses.push(loss(row, context, store)?);
    }
    let question = format!(
        "Give up {}? Devices keep what they have not delivered.",
        losses.join("; ")
    );
    confirm(&question, args.yes)?;
    let mut abandoned: Vec<RunId> = Vec::new();
    for (row, loss) in rows.iter().zip(&losses) {
        if store.give_up_run(row.id, &format!("given up by the user: {loss}"))? {
            abandoned.push(row.id);
        }
    }
    if !workspace.is_served() {
        tell("no coordinator serves this workspace: the runs are recorded when `regatta serve` runs");
    }
    context.print(&json!({ "given_up": abandoned }), || {
        let lines = abandoned
            .iter()
            .map(|run| format!("run {run} is given up, with the files that have arrived"));
        lines.collect::<Vec<_>>().join("\n")
    })?;
    Ok(exit::OK)
}

/// Says what giving up a run loses.
///
/// # Errors
/// Returns an error for a run that is over, was never sent, or still goes on at a device that can end it.
fn loss(row: &RunRow, context: &Context, store: &Store) -> Result<String, Failure> {
    let abort = || {
        format!(
            "end it instead: {}",
            context.command(&format!("runs abort {}", row.id))
        )
    };
    if row.is_over() {
        return Err(Failure::misuse(format!(
            "run {} is over: nothing is awaited",
            row.id
        )));
    }
    if row.spec_sha256.is_none() {
        return Err(Failure::misuse(format!("run {} was not sent to its device yet", row.id)).hint(abort()));
    }
    let is_reachable = store.device(&row.device)?.is_some_and(|device| device.online);
    let has_ended = row.state.phase.is_final() || row.state.phase == RunPhase::Draining;
    if !has_ended && is_reachable {
        return Err(
            Failure::misuse(format!("run {} is {} on its device", row.id, row.shown_phase())).hint(abort()),
        );
    }
    let streams = store.streams(row.id)?;
    let missing: Vec<String> = streams
        .iter()
        .filter(|stream| stream.listed && !stream.whole)
        .map(|stream| escape(stream.name.as_str()).into_owned())
        .collect();
    Ok(match missing.as_slice() {
        [] => format!("what run {} has not delivered yet", row.id),
        missing => format!("{} of run {}", missing.join(", "), row.id),
    })
}
