//! `regatta runs abort` and `runs give-up`: end runs that go on, and runs whose files never arrive.

use std::collections::BTreeSet;

use jiff::Timestamp;
use regatta_text::escape;
use regatta_types::{ExitCode, RunId, documents::RunPhase};
use serde_json::json;

use super::super::{Context, confirm::confirm, context::tell};
use crate::exit::{CommandResult, Failure};
use regatta_lab_store::{RunRow, Store, workspace::Workspace};
use regatta_lab_views::{
    lookup,
    wording::{self, run_text},
};

/// Flags of `runs abort`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct AbortArgs {
    /// Run ids, their beginnings or ends, or `last`
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<String>,
}

/// Flags of `runs give-up`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct GiveUpArgs {
    /// Run ids, their beginnings or ends, or `last`
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<String>,
    /// Record the runs now, even if their devices are online and have not ended them
    #[arg(long)]
    force: bool,
    /// Do not prompt
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
        if store.runs().request_abort(row.id, "aborted by the user")? {
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
        tell(&format!(
            "no coordinator serves this workspace: devices end the runs when it does: {}",
            context.command("serve")
        ));
    }
    context.print(&json!({ "aborted": aborted, "ended": ended }), || {
        let lines = aborted.iter().map(|run| format!("run {run}: abort requested"));
        let rest = ended.iter().map(|run| format!("run {run} has ended already"));
        lines.chain(rest).collect::<Vec<_>>().join("\n")
    })?;
    Ok(ExitCode::Success)
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
    let mut notes = BTreeSet::new();
    for row in &rows {
        losses.push(loss(row, context, store)?);
        if may_execute(row) {
            notes.insert(note_of_abort(row, args.force, context, workspace, store)?);
        }
    }
    let mut question = format!(
        "Give up {}? Devices keep the files that they have not delivered.",
        losses.join("; ")
    );
    for note in notes {
        question.push(' ');
        question.push_str(&note);
    }
    confirm(&question, args.yes)?;
    let mut abandoned: Vec<&RunRow> = Vec::new();
    for (row, loss) in rows.iter().zip(&losses) {
        if store
            .runs()
            .give_up(row.id, &format!("given up by the user: {loss}"))?
        {
            abandoned.push(row);
        }
    }
    if !workspace.is_served() {
        tell(&format!(
            "no coordinator serves this workspace: the runs are recorded when it does: {}",
            context.command("serve")
        ));
    }
    let ids: Vec<RunId> = abandoned.iter().map(|row| row.id).collect();
    let pending = abandoned.iter().filter(|row| may_execute(row));
    let pending: Vec<RunId> = pending.map(|row| row.id).collect();
    context.print(&json!({ "abandoned": ids, "abort_pending": pending }), || {
        let lines = abandoned.iter().map(|row| {
            let text = format!("run {} is given up, with the files that have arrived", row.id);
            if may_execute(row) {
                let device = run_text::device(row);
                format!("{text}; {device} aborts it when it is connected, before any other run")
            } else {
                text
            }
        });
        lines.collect::<Vec<_>>().join("\n")
    })?;
    Ok(ExitCode::Success)
}

/// Returns whether the run may still execute on its device, as far as the device has reported.
pub(super) const fn may_execute(row: &RunRow) -> bool {
    !row.state.phase.is_final() && !matches!(row.state.phase, RunPhase::Draining)
}

/// Describes when the device of a run ends it.
///
/// # Errors
/// Returns an error if the device is online, unless the user forces it: then the run is aborted instead.
fn note_of_abort(
    row: &RunRow,
    is_forced: bool,
    context: &Context,
    workspace: &Workspace,
    store: &Store,
) -> Result<String, Failure> {
    let now = Timestamp::now();
    let device = run_text::device(row);
    let why = match (
        store.service().state()?.broker_lost,
        store.devices().get(&row.device)?,
    ) {
        _ if !workspace.is_served() => "no coordinator serves this workspace".to_owned(),
        (Some(since), _) => format!("the coordinator lost the broker {}", wording::ago(&since, now)),
        (None, Some(known)) if known.online && is_forced => {
            return Ok(format!(
                "{device} is online and has not ended the run: the coordinator requests an abort, and records the run without waiting for it."
            ));
        }
        (None, Some(known)) if known.online && row.abort.is_none() => {
            return Err(
                Failure::misuse(format!("run {} is {} on its device", row.id, row.shown_phase()))
                    .hint(format!("{}; or add --force", instead(row, context))),
            );
        }
        (None, Some(known)) if known.online => {
            return Err(Failure::misuse(format!(
                "the abort of run {} is pending, and {device} is online",
                row.id
            ))
            .hint(format!(
                "wait for its end: {}; or add --force",
                context.command(&format!("runs watch {}", row.id))
            )));
        }
        (None, Some(known)) => format!("it was last seen {}", wording::ago(&known.last_seen, now)),
        (None, None) => "it is not known here".to_owned(),
    };
    Ok(format!(
        "{device} cannot be informed now ({why}): the run may still execute there, and is aborted when the device reconnects."
    ))
}

fn instead(row: &RunRow, context: &Context) -> String {
    format!(
        "end it instead: {}",
        context.command(&format!("runs abort {}", row.id))
    )
}

/// Describes the loss of giving up a run.
///
/// # Errors
/// Returns an error for a run that is over or was never sent.
fn loss(row: &RunRow, context: &Context, store: &Store) -> Result<String, Failure> {
    if row.is_over() {
        return Err(Failure::misuse(format!(
            "run {} has ended, and all its files have arrived",
            row.id
        )));
    }
    if row.spec_sha256.is_none() {
        return Err(
            Failure::misuse(format!("run {} was not sent to its device yet", row.id))
                .hint(instead(row, context)),
        );
    }
    let streams = store.streams().of_run(row.id)?;
    let missing: Vec<String> = streams
        .iter()
        .filter(|stream| stream.listed && !stream.is_complete)
        .map(|stream| escape(stream.name.as_str()).into_owned())
        .collect();
    Ok(match missing.as_slice() {
        [] => format!("the undelivered files of run {}", row.id),
        missing => format!("{} of run {}", missing.join(", "), row.id),
    })
}
