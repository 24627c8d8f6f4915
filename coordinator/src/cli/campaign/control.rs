//! `regatta campaign pause`, `resume`, `abort` and `retry`: store what the user requests. The coordinator acts on it.

use regatta_types::documents::EndCause;
use serde_json::json;

use super::{super::confirm::confirm, Context, campaign, context::tell};
use crate::{
    exit::{self, CommandResult, Failure},
    store::{CampaignRow, CampaignState, CellState, Store},
    workspace::Workspace,
};

/// The campaign of a command.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct NameArgs {
    /// The campaign
    name: String,
}

/// Flags of `campaign abort`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct AbortArgs {
    /// The campaign
    name: String,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

/// Flags of `campaign retry`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct RetryArgs {
    /// The campaign
    name: String,
    /// The cause of the failed cells: device, infrastructure, precondition, workload, invalid or operator
    #[arg(long, value_name = "CAUSE")]
    cause: EndCause,
}

/// Pauses a campaign.
pub(super) fn pause(args: &NameArgs, context: &Context) -> CommandResult {
    let (_, store) = context.open_store()?;
    let row = campaign(&store, Some(&args.name))?;
    change(&row, CampaignState::Paused, context, &store)?;
    let open = store.open_attempts()?;
    let running = open.iter().filter(|attempt| attempt.campaign == row.name).count();
    print(&row, CampaignState::Paused, context, &|| {
        format!(
            "campaign {} is paused; attempts that still run: {running}\ncontinue it: `regatta campaign resume {}`",
            row.name, row.name
        )
    })
}

/// Continues a campaign.
pub(super) fn resume(args: &NameArgs, context: &Context) -> CommandResult {
    let (workspace, store) = context.open_store()?;
    let row = campaign(&store, Some(&args.name))?;
    change(&row, CampaignState::Running, context, &store)?;
    note_unserved(&workspace, context);
    print(&row, CampaignState::Running, context, &|| {
        format!("campaign {} continues", row.name)
    })
}

/// Aborts a campaign.
pub(super) fn abort(args: &AbortArgs, context: &Context) -> CommandResult {
    let (workspace, store) = context.open_store()?;
    let row = campaign(&store, Some(&args.name))?;
    if row.ended.is_none() && row.state != CampaignState::Aborted {
        let counts = store.count_cells(&row.name)?;
        let waiting = counts.iter().find(|(state, _)| *state == CellState::Waiting);
        let question = format!(
            "Abort campaign {}? {} of its cells have not ended; it cannot be resumed.",
            row.name,
            waiting.map_or(0, |(_, count)| *count)
        );
        confirm(&question, args.yes)?;
    }
    change(&row, CampaignState::Aborted, context, &store)?;
    note_unserved(&workspace, context);
    print(&row, CampaignState::Aborted, context, &|| {
        format!("campaign {} is aborted; its runs are requested to end", row.name)
    })
}

/// Makes failed cells wait again.
pub(super) fn retry(args: &RetryArgs, context: &Context) -> CommandResult {
    let (workspace, store) = context.open_store()?;
    let row = campaign(&store, Some(&args.name))?;
    if row.state == CampaignState::Aborted {
        return Err(Failure::misuse(format!("campaign {} was aborted", row.name))
            .hint("start a plan with another name"));
    }
    if let Some(deadline) = row.deadline.as_ref().filter(|at| has_passed(at)) {
        return Err(Failure::misuse(format!(
            "the deadline of campaign {} passed at {deadline}",
            row.name
        ))
        .hint("start a plan with another name and a later deadline"));
    }
    let retried = store.retry_cells(&row.name, args.cause)?;
    if retried == 0 {
        return Err(Failure::misuse(format!(
            "no cell of campaign {} failed with the cause {}",
            row.name, args.cause
        ))
        .hint(format!("`regatta campaign status {}` shows the causes", row.name)));
    }
    note_unserved(&workspace, context);
    let document = json!({ "campaign": row.name, "cause": args.cause, "retried": retried });
    context.print(&document, || {
        format!("cells of campaign {} that are tried again: {retried}", row.name)
    })?;
    Ok(exit::OK)
}

fn has_passed(deadline: &str) -> bool {
    let at: Result<jiff::Timestamp, _> = deadline.parse();
    at.is_ok_and(|at| at <= jiff::Timestamp::now())
}

fn change(row: &CampaignRow, state: CampaignState, context: &Context, store: &Store) -> Result<(), Failure> {
    if store.request_campaign_state(&row.name, state)? {
        return Ok(());
    }
    let row = campaign(store, Some(&row.name))?;
    let what = match (&row.ended, row.state) {
        (Some(_), _) => "has ended".to_owned(),
        (None, state) => format!("is {state} already"),
    };
    let status = context.command(&format!("campaign status {}", row.name));
    Err(Failure::misuse(format!("campaign {} {what}", row.name)).hint(status))
}

fn note_unserved(workspace: &Workspace, context: &Context) {
    if !workspace.is_served() {
        tell(&format!(
            "no coordinator serves this workspace, so nothing happens until it does: {}",
            context.command("serve")
        ));
    }
}

fn print(
    row: &CampaignRow,
    state: CampaignState,
    context: &Context,
    text: &dyn Fn() -> String,
) -> CommandResult {
    context.print(&json!({ "campaign": row.name, "state": state }), text)?;
    Ok(exit::OK)
}
