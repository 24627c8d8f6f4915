//! `regatta runs`: the commands about requested runs. [`super::verify`] verifies and [`super::export`] exports them.

mod ending;
mod exported;
mod list;
mod logs;
mod note;
mod removal;
mod show;
mod waiting;

use std::fmt::Write as _;

use regatta_text::escape;
use regatta_types::ExitCode;

use super::{Context, export, verify, with_hint};
use crate::exit::CommandResult;
use regatta_lab_runs::rebuild as rebuild_store;

/// Commands about runs.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// List the newest runs, the newest last
    List(list::Args),
    /// Show one run with its files
    Show(show::ShowArgs),
    /// Print a log of a run: what LoadGen, the run process or the device wrote
    Logs(logs::LogsArgs),
    /// Write a note on a run, which lists show
    Note(note::NoteArgs),
    /// Copy runs' specs, records and files, byte for byte, with SHA-256 manifests
    Export(export::ExportArgs),
    /// Add exported runs of another lab, with their files
    Import(exported::ImportArgs),
    /// Verify runs: the device's signature, and the hash of every file
    Verify(verify::VerifyArgs),
    /// Add recorded runs that are missing from the database, for example after regatta.db was lost
    Rebuild,
    /// Show the progress of runs until they have ended
    Watch(waiting::WatchArgs),
    /// Wait silently until runs have ended; the exit code is 0 if all are good, 1 if one is not
    Wait(waiting::WaitArgs),
    /// End runs
    Abort(ending::AbortArgs),
    /// Record runs without the files that will never arrive, so that their devices can continue
    GiveUp(ending::GiveUpArgs),
    /// Remove runs here and on their devices
    Remove(removal::RemoveArgs),
    /// Remove old or failed runs, except those that an audit or a submission tree needs
    Prune(removal::PruneArgs),
}

pub(super) fn run(command: &Command, context: &Context) -> CommandResult {
    // An exported run is verified anywhere.
    if let Command::Verify(args) = command {
        return verify::run(args, context);
    }
    if matches!(command, Command::Rebuild) {
        return rebuild(context);
    }
    if let Command::Show(args) = command
        && let Some(directory) = exported::directory(args.run())
    {
        return exported::show(directory, context);
    }
    let (workspace, store) = context.open_store()?;
    match command {
        Command::Verify(_) | Command::Rebuild => {}
        Command::List(args) => list::run(args, context, &workspace, &store)?,
        Command::Show(args) => show::show(args, context, &workspace, &store)?,
        Command::Logs(args) => logs::run(args, context, &workspace, &store)?,
        Command::Note(args) => note::run(args, context, &store)?,
        Command::Export(args) => export::run(args, context, &workspace, &store)?,
        Command::Import(args) => exported::import(args, context, &workspace, &store)?,
        Command::Watch(args) => return waiting::watch(args, context, &workspace, &store),
        Command::Wait(args) => return waiting::wait(args, context, &workspace, &store),
        Command::Abort(args) => return ending::abort(args, context, &workspace, &store),
        Command::GiveUp(args) => return ending::give_up(args, context, &workspace, &store),
        Command::Remove(args) => return removal::remove(args, context, &workspace, &store),
        Command::Prune(args) => return removal::prune(args, context, &workspace, &store),
    }
    Ok(ExitCode::Success)
}

fn rebuild(context: &Context) -> CommandResult {
    let workspace = context.open()?;
    // A coordinator that serves would record the same runs.
    let _lock = workspace
        .lock()
        .map_err(|error| with_hint(error.into(), &workspace))?;
    let store = workspace.store()?;
    let rebuilt = rebuild_store(&workspace, &store)?;
    let needs_members = workspace.config().tls && store.members().all()?.is_empty();
    context.print(&rebuilt, || {
        let (recorded, unfinished) = (rebuilt.recorded.len(), rebuilt.unfinished.len());
        let mut text = format!("added {recorded} recorded and {unfinished} unfinished runs to the store");
        for found in &rebuilt.problems {
            let _ = write!(text, "\n  {}: {}", found.run, escape(&found.problem));
        }
        if needs_members {
            text.push_str("\nno device is enrolled: enroll each again with `regatta device add NAME`");
        }
        text
    })?;
    Ok(if rebuilt.problems.is_empty() {
        ExitCode::Success
    } else {
        ExitCode::Negative
    })
}
