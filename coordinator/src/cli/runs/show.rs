//! `regatta runs show`: one run with its files, once, or again as it changes until it is over.

use std::time::Duration;

use super::super::{Context, interrupts::Interrupts, progress::rows, screen::Screen, wait::Wait};
use crate::{exit::Failure, tables};
use regatta_lab_store::{RunRow, Store, workspace::Workspace};
use regatta_lab_views::{documents::shown_run, lookup};

/// The interval between two drawings.
const PAUSE: Duration = Duration::from_millis(500);

/// Flags of `runs show`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  regatta runs show last
      the newest run: state, verdict, figures, settings and files
  regatta runs show last --format json | jq .outcome
      the same for a program
  regatta runs show exported
      a run that a colleague exported; this needs no workspace")]
pub(in crate::cli) struct ShowArgs {
    /// The run's id, its beginning or end, or `last`; or a directory that `runs export` wrote
    #[arg(value_name = "RUN|DIR")]
    run: String,
    /// Follow the run until it has ended; without a terminal, print a line per change first
    #[arg(long)]
    watch: bool,
}

impl ShowArgs {
    /// Returns the words for the run.
    pub(super) fn run(&self) -> &str {
        &self.run
    }
}

/// Shows a run.
pub(super) fn show(
    args: &ShowArgs,
    context: &Context,
    workspace: &Workspace,
    store: &Store,
) -> Result<(), Failure> {
    let mut row = lookup::run(store, &args.run)?;
    if args.watch && !row.is_over() {
        row = until_over(row, context, workspace, store)?;
    }
    let streams = store.streams().of_run(row.id)?;
    let directory = workspace.run(row.id);
    let document = shown_run(&row, &streams, &directory);
    context.print(&document, || tables::run(&row, &streams, &directory))?;
    Ok(())
}

fn until_over(
    mut row: RunRow,
    context: &Context,
    workspace: &Workspace,
    store: &Store,
) -> Result<RunRow, Failure> {
    let ids = [row.id];
    let wait = Wait {
        context,
        workspace,
        store,
        shows_progress: true,
        longest: None,
        is_viewer: true,
    };
    if !context.is_lively() {
        return Ok(wait.for_runs(&ids)?.pop().unwrap_or(row));
    }
    let interrupts = Interrupts::watch()?;
    let mut screen = Screen::new();
    loop {
        row = rows(store, &ids)?.pop().unwrap_or(row);
        if row.is_over() {
            screen.clear();
            return Ok(row);
        }
        screen.draw(&tables::run(
            &row,
            &store.streams().of_run(row.id)?,
            &workspace.run(row.id),
        ));
        if !workspace.is_served() {
            return Err(wait.unserved());
        }
        if interrupts.wait_for(1, PAUSE) {
            let again = context.command(&format!("runs show {} --watch", row.id));
            return Err(Failure::interrupted("interrupted: the run continues").hint(again));
        }
    }
}
