//! `regatta campaign status` and `list`: the progress of campaigns.

use serde_json::json;

use super::{Context, campaign, serve_command, watch};
use crate::{
    exit::{CommandResult, Failure},
    tables,
};
use regatta_lab_views::documents::{campaign_status, campaign_summary};
use regatta_types::ExitCode;

/// Flags of `campaign status`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  regatta campaign status
      the campaign that is running, or the last one
  regatta campaign status weekend --watch
      follow one until it has ended")]
pub(in crate::cli) struct StatusArgs {
    /// The campaign [default: the one that has not ended, or the last one]
    name: Option<String>,
    /// Follow the campaign until it has ended
    #[arg(long)]
    watch: bool,
}

/// Prints the progress of a campaign. The exit code is 1 when a cell failed, or was skipped.
pub(super) fn run(args: &StatusArgs, context: &Context) -> CommandResult {
    let (workspace, store) = context.open_store()?;
    let row = campaign(&store, args.name.as_deref())?;
    if args.watch {
        watch::until_ended(&row.name, context, &workspace, &store)?;
    }
    let row = campaign(&store, Some(&row.name))?;
    let status = campaign_status(&row, serve_command(context, &workspace).as_deref(), &store)?;
    context.print(&status, || tables::campaign_status(&status))?;
    Ok(if status.summary.failed + status.summary.skipped == 0 {
        ExitCode::Success
    } else {
        ExitCode::Negative
    })
}

/// Prints every campaign.
pub(super) fn list(context: &Context) -> CommandResult {
    let (_, store) = context.open_store()?;
    let summaries: Result<Vec<_>, Failure> = store
        .campaigns()
        .all()?
        .iter()
        .map(|row| Ok(campaign_summary(row, &store)?))
        .collect();
    let summaries = summaries?;
    context.print(&json!({ "campaigns": summaries }), || {
        tables::campaigns(&summaries)
    })?;
    Ok(ExitCode::Success)
}
