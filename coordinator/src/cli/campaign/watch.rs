//! `regatta campaign status --watch`: redraws the progress on a terminal, and prints a line per change elsewhere, until the campaign has
//! ended.

use std::time::Duration;

use super::{
    super::{interrupts::Interrupts, screen::Screen},
    Context, campaign,
    context::tell,
    serve_command,
};
use crate::{exit::Failure, tables};
use regatta_lab_store::{Store, workspace::Workspace};
use regatta_lab_views::{
    documents::{CampaignSummary, campaign_status},
    wording,
};

/// The interval between two drawings.
const PAUSE: Duration = Duration::from_millis(500);

/// Shows the progress of a campaign until it has ended.
///
/// # Errors
/// Returns an error when the user interrupts, the coordinator ends, or the store fails.
pub(in crate::cli) fn until_ended(
    name: &str,
    context: &Context,
    workspace: &Workspace,
    store: &Store,
) -> Result<(), Failure> {
    let interrupts = Interrupts::watch()?;
    let mut screen = Screen::new();
    let mut last = None;
    loop {
        let row = campaign(store, Some(name))?;
        let status = campaign_status(&row, serve_command(context, workspace).as_deref(), store)?;
        if context.is_lively() {
            screen.draw(&tables::campaign_status(&status));
        } else if last.as_ref() != Some(&status.summary) {
            tell(&line(&status.summary));
        }
        last = Some(status.summary);
        if row.ended.is_some() {
            screen.clear();
            return Ok(());
        }
        if !workspace.is_served() {
            return Err(
                Failure::could_not("no coordinator serves this workspace").hint(format!(
                    "start it, and the campaign continues: {}",
                    context.command("serve")
                )),
            );
        }
        if interrupts.wait_for(1, PAUSE) {
            let status = context.command(&format!("campaign status {name} --watch"));
            return Err(
                Failure::interrupted(format!("interrupted: campaign {name} continues"))
                    .hint(format!("follow it again: {status}")),
            );
        }
    }
}

/// Returns the progress in one line, for a log.
fn line(summary: &CampaignSummary) -> String {
    format!(
        "{} {}: {}",
        summary.campaign,
        summary.state,
        wording::campaign_counts(summary)
    )
}
