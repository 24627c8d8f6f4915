//! `regatta runs watch` and `runs wait`: wait until runs have ended, with and without progress. Their exit code is the runs' verdict.

use std::time::Duration;

use regatta_text::HumanDuration;
use regatta_types::{ExitCode, RunId};

use super::super::{Context, report::report, wait::Wait};
use crate::exit::{CommandResult, Failure};
use regatta_lab_store::{Store, workspace::Workspace};
use regatta_lab_views::lookup;

/// Flags of `runs watch`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct WatchArgs {
    /// Run ids, their beginnings or ends, or `last` [default: every open run]
    #[arg(value_name = "RUN")]
    runs: Vec<String>,
}

/// Flags of `runs wait`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct WaitArgs {
    /// Run ids, their beginnings or ends, or `last`
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<String>,
    /// Stop waiting after this time, such as 30m, with exit code 3 [default: wait until the runs have ended]
    #[arg(long, value_name = "DURATION")]
    timeout: Option<HumanDuration>,
}

/// Shows progress until the runs have ended.
pub(super) fn watch(
    args: &WatchArgs,
    context: &Context,
    workspace: &Workspace,
    store: &Store,
) -> CommandResult {
    let rows = if args.runs.is_empty() {
        store.runs().open()?
    } else {
        lookup::runs(store, &args.runs)?
    };
    if rows.is_empty() {
        return Err(
            Failure::misuse("every run is over").hint("`regatta runs watch last` shows the last result")
        );
    }
    let ids: Vec<RunId> = rows.iter().map(|row| row.id).collect();
    let wait = Wait {
        context,
        workspace,
        store,
        shows_progress: true,
        longest: None,
        is_viewer: true,
    };
    until_over(&ids, &wait)
}

/// Waits silently until the runs have ended.
pub(super) fn wait(
    args: &WaitArgs,
    context: &Context,
    workspace: &Workspace,
    store: &Store,
) -> CommandResult {
    let ids: Vec<RunId> = lookup::runs(store, &args.runs)?
        .iter()
        .map(|row| row.id)
        .collect();
    let longest = args
        .timeout
        .map(|longest| Duration::from_millis(longest.millis()));
    let wait = Wait {
        context,
        workspace,
        store,
        shows_progress: false,
        longest,
        is_viewer: true,
    };
    until_over(&ids, &wait)
}

fn until_over(ids: &[RunId], wait: &Wait<'_>) -> CommandResult {
    let rows = wait.for_runs(ids)?;
    let is_good = report(&rows, &[], wait.context)?;
    Ok(if is_good {
        ExitCode::Success
    } else {
        ExitCode::Negative
    })
}
