//! `regatta campaign status --watch`: redraws the progress on a terminal, and prints a line per change elsewhere, until the campaign has
//! ended.

use std::{io, time::Duration};

use console::Term;
use regatta_output::fit;
use regatta_text::escape_lines;

use super::{super::interrupts::Interrupts, Context, campaign, context::tell, serve_command};
use crate::{
    documents::campaign_status,
    exit::Failure,
    store::Store,
    tables::{self, CampaignSummary},
    workspace::Workspace,
};

/// The interval between two drawings.
const PAUSE: Duration = Duration::from_millis(500);

/// Shows the progress of a campaign until it has ended.
///
/// # Errors
/// Returns an error when the user interrupts, the coordinator ends, or the store fails.
pub(super) fn until_ended(
    name: &str,
    context: &Context,
    workspace: &Workspace,
    store: &Store,
) -> Result<(), Failure> {
    let interrupts = Interrupts::watch()?;
    let terminal = Term::stderr();
    let mut last = None;
    loop {
        let row = campaign(store, Some(name))?;
        let status = campaign_status(&row, serve_command(context, workspace).as_deref(), store)?;
        if context.is_lively() {
            let text = tables::campaign_status(&status);
            let text = escape_lines(&text);
            let text = fit(&text, &io::stderr());
            let lines: Vec<&str> = text.lines().collect();
            // A screen that is too low shows the beginning.
            let most = usize::from(terminal.size().0.saturating_sub(1)).max(1);
            // A terminal that is gone is noticed elsewhere.
            let _ = draw(&terminal, &lines[..lines.len().min(most)], last.is_none());
        } else if last.as_ref() != Some(&status.summary) {
            tell(&line(&status.summary));
        }
        last = Some(status.summary);
        if row.ended.is_some() {
            if context.is_lively() {
                let _ = terminal.clear_screen();
            }
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

/// Draws lines at the top of the screen, over those that were drawn before.
fn draw(terminal: &Term, lines: &[&str], is_first: bool) -> io::Result<()> {
    if is_first {
        terminal.clear_screen()?;
    }
    terminal.move_cursor_to(0, 0)?;
    for line in lines {
        terminal.clear_line()?;
        terminal.write_line(line)?;
    }
    terminal.clear_to_end_of_screen()
}

/// The progress in one line, for a log.
fn line(summary: &CampaignSummary) -> String {
    format!(
        "{} {}: {}",
        summary.campaign,
        summary.state,
        tables::campaign_counts(summary)
    )
}
