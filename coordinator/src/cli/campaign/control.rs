//! `regatta campaign pause`, `resume`, `abort`, `retry` and `deadline`: store the user's request. The coordinator acts on it.

use jiff::Timestamp;
use regatta_types::{ExitCode, documents::EndCause};
use serde_json::json;

use super::{
    super::{confirm::confirm, health_text::user, operations::unless_permitted},
    Context, campaign,
    context::tell,
};
use crate::exit::{CommandResult, Failure};
use regatta_campaigns::Deadline;
use regatta_lab_store::{CampaignRow, CampaignState, CellState, Store, workspace::Workspace};
use regatta_lab_views::{
    operations::{change_campaign, move_deadline, retry_cells, retry_failed_cells, retry_skipped_cells},
    wording,
};

/// The campaign of a command.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct NameArgs {
    /// The campaign
    pub(super) name: String,
}

/// Flags of `campaign abort`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct AbortArgs {
    /// The campaign
    name: String,
    /// Do not prompt
    #[arg(long)]
    yes: bool,
}

/// Flags of `campaign retry`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct RetryArgs {
    /// The campaign
    name: String,
    /// Retry only the cells that failed for this cause: device, infrastructure, precondition, workload, invalid or operator
    #[arg(long, value_name = "CAUSE")]
    cause: Option<EndCause>,
    /// Try cells again that were skipped, for example because the deadline had passed
    #[arg(long, conflicts_with = "cause")]
    skipped: bool,
}

/// Flags of `campaign deadline`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct DeadlineArgs {
    /// The campaign
    name: String,
    /// Start no attempt after this time, such as 2026-11-30T08:00:00Z, or a duration from now, such as 12h
    #[arg(long, value_name = "TIME", required_unless_present = "none")]
    until: Option<Deadline>,
    /// Remove the deadline
    #[arg(long, conflicts_with = "until")]
    none: bool,
}

/// Pauses a campaign.
pub(super) fn pause(args: &NameArgs, context: &Context) -> CommandResult {
    let (_, store) = context.open_store()?;
    let row = campaign(&store, Some(&args.name))?;
    change(&row, CampaignState::Paused, &store)?;
    let open = store.attempts().open()?;
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
    change(&row, CampaignState::Running, &store)?;
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
        let counts = store.cells().count_by_state(&row.name)?;
        let waiting = counts.iter().find(|(state, _)| *state == CellState::Waiting);
        let question = format!(
            "Abort campaign {}? {} of its cells have not ended; it cannot be resumed.",
            row.name,
            waiting.map_or(0, |(_, count)| *count)
        );
        confirm(&question, args.yes)?;
    }
    change(&row, CampaignState::Aborted, &store)?;
    note_unserved(&workspace, context);
    print(&row, CampaignState::Aborted, context, &|| {
        format!("campaign {} is aborted; its runs are requested to end", row.name)
    })
}

/// Makes failed cells wait again.
pub(super) fn retry(args: &RetryArgs, context: &Context) -> CommandResult {
    let (workspace, store) = context.open_store()?;
    let row = campaign(&store, Some(&args.name))?;
    let retried = match args.cause {
        Some(cause) => retry_cells(&row, cause, &user(), &store),
        None if args.skipped => retry_skipped_cells(&row, &user(), &store),
        None => retry_failed_cells(&row, &user(), &store),
    };
    let retried = retried.map_err(unless_permitted)?;
    note_unserved(&workspace, context);
    let document = json!({ "campaign": row.name, "cause": args.cause, "retried": retried });
    context.print(&document, || match retried {
        1 => format!("1 cell of campaign {} will be retried", row.name),
        cells => format!("{cells} cells of campaign {} will be retried", row.name),
    })?;
    Ok(ExitCode::Success)
}

/// Moves or removes the deadline of a campaign.
pub(super) fn deadline(args: &DeadlineArgs, context: &Context) -> CommandResult {
    let (_, store) = context.open_store()?;
    let row = campaign(&store, Some(&args.name))?;
    let until = args.until.map(|until| until.time_from(Timestamp::now()));
    let until = until.transpose().map_err(Failure::usage)?;
    move_deadline(&row, until, &user(), &store).map_err(unless_permitted)?;
    let until = until.map(|until| until.to_string());
    let counts = store.cells().count_by_state(&row.name)?;
    let skipped = counts.iter().find(|(state, _)| *state == CellState::Skipped);
    let skipped = skipped.map_or(0, |(_, count)| *count);
    let document = json!({ "campaign": row.name, "deadline": until, "skipped": skipped });
    context.print(&document, || {
        let mut text = match &until {
            Some(until) => format!(
                "no attempt of campaign {} begins after {}",
                row.name,
                wording::time(until)
            ),
            None => format!("campaign {} has no deadline", row.name),
        };
        if skipped > 0 {
            text.push_str(&format!(
                "\n{skipped} cells were skipped: `regatta campaign retry {} --skipped` tries them again",
                row.name
            ));
        }
        text
    })?;
    Ok(ExitCode::Success)
}

fn change(row: &CampaignRow, state: CampaignState, store: &Store) -> Result<(), Failure> {
    if row.ended.is_none() && row.state == state {
        tell(&format!("campaign {} was {state} already", row.name));
        return Ok(());
    }
    change_campaign(row, state, &user(), store).map_err(unless_permitted)
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
    Ok(ExitCode::Success)
}
