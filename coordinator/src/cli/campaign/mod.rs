//! `regatta campaign`: plans, starts, shows and steers campaigns. The coordinator's scheduler runs them.

pub(super) mod checked_plan;
mod control;
mod log;
pub(super) mod plan;
mod report;
pub(super) mod start;
mod status;
pub(super) mod watch;

use super::{Context, context};
use crate::exit::{CommandResult, Failure};
use regatta_lab_store::{CampaignRow, Store, workspace::Workspace};

/// Commands about campaigns.
#[derive(Debug, clap::Subcommand)]
#[command(after_help = "\
Examples:
  regatta campaign plan weekend.toml
      show what would run, on which devices, for how long, and what is missing
  regatta campaign start weekend.toml
      start it; the coordinator runs it, and continues after a restart
  regatta campaign status --watch
      follow it until it has ended
  regatta campaign report weekend --format csv
      print every attempt with its run and its figure")]
pub(super) enum Command {
    /// Show what a plan would run, where and for how long, and what is missing
    Plan(plan::PlanArgs),
    /// Start the campaign of a plan
    Start(start::StartArgs),
    /// List the campaigns
    List,
    /// Show the progress of a campaign; the exit code is 1 if a cell failed
    Status(status::StatusArgs),
    /// Start no attempt until `resume`; attempts that are running continue
    Pause(control::NameArgs),
    /// Continue a paused campaign
    Resume(control::NameArgs),
    /// End a campaign and its runs
    Abort(control::AbortArgs),
    /// Try failed or skipped cells again
    Retry(control::RetryArgs),
    /// Change or remove the deadline of a campaign
    Deadline(control::DeadlineArgs),
    /// Show who paused, resumed, aborted or retried a campaign or changed its deadline, and when
    Log(control::NameArgs),
    /// Print every cell with its attempts; the exit code is 1 unless every cell is good
    Report(report::ReportArgs),
}

pub(super) fn run(command: &Command, context: &Context) -> CommandResult {
    match command {
        Command::Plan(args) => plan::run(args, context),
        Command::Start(args) => start::run(args, context),
        Command::List => status::list(context),
        Command::Status(args) => status::run(args, context),
        Command::Pause(args) => control::pause(args, context),
        Command::Resume(args) => control::resume(args, context),
        Command::Abort(args) => control::abort(args, context),
        Command::Retry(args) => control::retry(args, context),
        Command::Deadline(args) => control::deadline(args, context),
        Command::Log(args) => log::run(args, context),
        Command::Report(args) => report::run(args, context),
    }
}

/// Returns the command that serves a workspace which no coordinator serves.
fn serve_command(context: &Context, workspace: &Workspace) -> Option<String> {
    (!workspace.is_served()).then(|| context.command("serve"))
}

/// Returns the campaign that a user names. Without a name, returns the only one that has not ended, or the one that was started last.
fn campaign(store: &Store, name: Option<&str>) -> Result<CampaignRow, Failure> {
    let campaigns = store.campaigns().all()?;
    if campaigns.is_empty() {
        return Err(Failure::misuse("no campaign was started yet")
            .hint("`regatta campaign plan FILE` shows what a plan would run"));
    }
    let known = |rows: &[&CampaignRow]| {
        rows.iter()
            .map(|row| row.name.clone())
            .collect::<Vec<_>>()
            .join(", ")
    };
    if let Some(name) = name {
        let found = campaigns.iter().find(|row| row.name == name);
        let all: Vec<&CampaignRow> = campaigns.iter().collect();
        return found
            .cloned()
            .ok_or_else(|| Failure::misuse(format!("unknown campaign `{name}`; known are {}", known(&all))));
    }
    let open: Vec<&CampaignRow> = campaigns.iter().filter(|row| row.ended.is_none()).collect();
    match (open.as_slice(), campaigns.last()) {
        ([only], _) => Ok((*only).clone()),
        ([], Some(last)) => Ok(last.clone()),
        (several, _) => Err(Failure::misuse(format!(
            "which campaign? not ended are {}",
            known(several)
        ))),
    }
}
