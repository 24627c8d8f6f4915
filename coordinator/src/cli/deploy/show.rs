//! Shows deployments. Steps go to standard error: on a terminal one updated line per board, elsewhere plain lines. Results go to standard
//! output at the end.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use regatta_text::escape;
use regatta_types::documents::EndCause;
use serde::Serialize;

use super::board_error::BoardError;
use crate::{cli::context::tell, tables};
use regatta_deploy::{DeployOutcome, ProgressReporter};
use regatta_lab_views::wording;

/// The display of all boards.
pub(in crate::cli) struct Show {
    bars: Option<MultiProgress>,
    many: bool,
}

impl Show {
    /// Creates a display. It is drawn in place when `lively`. With `many` boards, every line has the board's name.
    pub(in crate::cli) fn new(lively: bool, many: bool) -> Self {
        Self {
            bars: lively.then(MultiProgress::new),
            many,
        }
    }

    /// Removes the drawn lines, because the results replace them.
    pub(super) fn clear(&self) {
        if let Some(bars) = &self.bars {
            // An error only means that the terminal is gone.
            let _ = bars.clear();
        }
    }

    /// Adds a board's line.
    pub(super) fn board(&self, name: &str) -> Board<'_> {
        let bar = self.bars.as_ref().map(|bars| {
            let bar = bars.add(ProgressBar::new_spinner());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} {msg}") {
                bar.set_style(style.tick_chars("⠋⠙⠸⠴⠦⠇ "));
            }
            bar.set_prefix(name.to_owned());
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        Board {
            show: self,
            name: name.to_owned(),
            bar,
            step: Mutex::new(String::new()),
        }
    }

    /// Does `work` at the terminal while nothing is drawn. The deployments continue meanwhile.
    pub(super) fn aside<R>(&self, work: impl FnOnce() -> R) -> R {
        let Some(bars) = &self.bars else {
            return work();
        };
        // An error only means that the terminal is gone.
        let _ = bars.clear();
        bars.set_draw_target(ProgressDrawTarget::hidden());
        let done = work();
        bars.set_draw_target(ProgressDrawTarget::stderr());
        done
    }
}

/// The display of one board.
pub(super) struct Board<'a> {
    show: &'a Show,
    name: String,
    bar: Option<ProgressBar>,
    step: Mutex<String>,
}

impl Board<'_> {
    /// Shows the board's last line.
    pub(super) fn end(&self, result: &Result<DeployOutcome, BoardError>, dry_run: bool) {
        let text = match result {
            Ok(outcome) => word(outcome, dry_run),
            Err(_) => FAILED,
        };
        match &self.bar {
            Some(bar) if self.show.many => bar.finish_with_message(text),
            Some(bar) => bar.finish_and_clear(),
            None if self.show.many => tell(&format!("{}: {text}", self.name)),
            None => {}
        }
    }
}

impl ProgressReporter for Board<'_> {
    fn say(&self, text: &str) {
        let text = &*escape(text);
        text.clone_into(&mut self.step.lock().unwrap_or_else(PoisonError::into_inner));
        match (&self.bar, &self.show.bars) {
            // For one board, every step stays visible. For many, only the newest does.
            (Some(bar), Some(bars)) if !self.show.many => {
                // An error only means that the terminal is gone.
                let _ = bars.println(text);
                bar.set_message(String::new());
            }
            (Some(bar), _) => bar.set_message(text.to_owned()),
            (None, _) if self.show.many => tell(&format!("{}: {text}", self.name)),
            (None, _) => tell(text),
        }
    }

    fn copied(&self, bytes: u64, total: u64) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{} of {}", wording::bytes(bytes), wording::bytes(total)));
        }
    }
}

/// The word for a failed deployment.
pub(super) const FAILED: &str = "FAILED";
/// The word for a board that was left out after failures.
pub(super) const NOT_BEGUN: &str = "not begun";

/// A deployment that failed or was not begun.
#[derive(Serialize)]
pub(super) struct Refusal {
    #[serde(skip)]
    pub(super) word: &'static str,
    /// The cause of the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cause: Option<EndCause>,
    /// The error with all its causes.
    pub(super) error: String,
    /// The hint for the user.
    pub(super) hint: Option<String>,
}

/// The result for one board.
pub(super) struct Row<'a> {
    pub(super) name: &'a str,
    pub(super) address: String,
    pub(super) outcome: Result<DeployOutcome, Refusal>,
}

#[derive(Serialize)]
pub(super) struct DeployDocument<'a> {
    dry_run: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    ending: Option<&'a str>,
    devices: Vec<DeviceDocument<'a>>,
}

#[derive(Serialize)]
struct DeviceDocument<'a> {
    name: &'a str,
    address: &'a str,
    ok: bool,
    #[serde(flatten)]
    outcome: Option<&'a DeployOutcome>,
    #[serde(flatten)]
    refusal: Option<&'a Refusal>,
}

/// Returns the results as JSON.
pub(super) fn document<'a>(
    rows: &'a [Row<'a>],
    dry_run: bool,
    ending: Option<&'a str>,
) -> DeployDocument<'a> {
    let device = |row: &'a Row<'a>| DeviceDocument {
        name: row.name,
        address: &row.address,
        ok: row.outcome.is_ok(),
        outcome: row.outcome.as_ref().ok(),
        refusal: row.outcome.as_ref().err(),
    };
    DeployDocument {
        dry_run,
        ending,
        devices: rows.iter().map(device).collect(),
    }
}

/// Returns the results for people: a sentence for one board, a table for many. Long texts follow the table.
pub(super) fn table(rows: &[Row<'_>], dry_run: bool) -> String {
    let [row] = rows else {
        let lines = rows.iter().map(|row| {
            let word = match &row.outcome {
                Ok(outcome) => word(outcome, dry_run),
                Err(refusal) => refusal.word,
            };
            [row.name.to_owned(), row.address.clone(), word.to_owned()]
        });
        let mut text = tables::plain(["device", "login", "outcome"], lines);
        let is_explained = |row: &&Row<'_>| match &row.outcome {
            Ok(_) => dry_run,
            Err(refusal) => refusal.word == FAILED,
        };
        for row in rows.iter().filter(is_explained) {
            text.push('\n');
            text.push_str(&sentence(row, dry_run));
        }
        for row in rows {
            for note in row.outcome.iter().flat_map(|outcome| &outcome.notes) {
                text.push_str(&format!("\n{}: {}", row.name, escape(note)));
            }
        }
        return text;
    };
    sentence(row, dry_run)
}

/// Formats a board's complete result.
fn sentence(row: &Row<'_>, dry_run: bool) -> String {
    let reported = match &row.outcome {
        Ok(outcome) => words(outcome, dry_run),
        Err(Refusal {
            error, hint: None, ..
        }) => escape(error).into_owned(),
        Err(Refusal {
            error,
            hint: Some(hint),
            ..
        }) => format!("{}\n  {hint}", escape(error)),
    };
    format!("{}: {reported}", row.name)
}

/// Formats a deployment's result briefly.
const fn word(outcome: &DeployOutcome, dry_run: bool) -> &'static str {
    match (&outcome.agent, outcome.changes.is_empty()) {
        (_, true) if dry_run => "nothing would be done",
        (_, false) if dry_run => "would be changed",
        (Some(_), true) => "nothing to do",
        (Some(_), false) => "deployed",
        (None, _) => "not heard",
    }
}

fn words(outcome: &DeployOutcome, dry_run: bool) -> String {
    let word = word(outcome, dry_run);
    let changes = &outcome.changes;
    match &outcome.agent {
        _ if dry_run && !changes.is_empty() => escape(&format!("would {}", changes.join("; "))).into_owned(),
        Some(agent) if changes.is_empty() => format!("{word}, connected with {agent}"),
        Some(agent) => {
            let device = outcome.device.as_deref().unwrap_or_default();
            format!("{word}, connected with {agent} as {device}")
        }
        None => word.to_owned(),
    }
}
