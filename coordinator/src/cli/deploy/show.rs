//! How deployments are shown: steps on standard error while they go on (a line for each board that changes in place on a
//! terminal, plain lines elsewhere), results on standard output at the end.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use serde::Serialize;

use super::BoardError;
use crate::{
    cli::context::tell,
    deploy::{Narrator, Outcome},
    tables,
};

/// What is shown of all boards.
pub(super) struct Show {
    bars: Option<MultiProgress>,
    many: bool,
}

impl Show {
    /// Drawn in place when `lively`. With `many` boards every line names its own.
    pub(super) fn new(lively: bool, many: bool) -> Self {
        Self {
            bars: lively.then(MultiProgress::new),
            many,
        }
    }

    /// A board's own line.
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

    /// Does something at the terminal while nothing is drawn.
    pub(super) fn aside<R>(&self, work: impl FnOnce() -> R) -> R {
        match &self.bars {
            Some(bars) => bars.suspend(work),
            None => work(),
        }
    }
}

/// What is shown of one board.
pub(super) struct Board<'a> {
    show: &'a Show,
    name: String,
    bar: Option<ProgressBar>,
    step: Mutex<String>,
}

impl Board<'_> {
    /// The last line about it.
    pub(super) fn end(&self, result: &Result<Outcome, BoardError>, dry_run: bool) {
        let text = match result {
            Ok(outcome) => words(outcome, dry_run),
            Err(_) => "FAILED".to_owned(),
        };
        match &self.bar {
            Some(bar) => bar.finish_with_message(text),
            None if self.show.many => tell(&format!("{}: {text}", self.name)),
            None => {}
        }
    }
}

impl Narrator for Board<'_> {
    fn say(&self, text: &str) {
        text.clone_into(&mut self.step.lock().unwrap_or_else(PoisonError::into_inner));
        match (&self.bar, &self.show.bars) {
            // Of one board every step stays to be read; of many, the newest.
            (Some(bar), Some(bars)) if !self.show.many => {
                // Nothing is lost when the terminal is gone.
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
            bar.set_message(format!("{} of {}", tables::bytes(bytes), tables::bytes(total)));
        }
    }
}

/// What came of one board, for the table.
pub(super) struct Row<'a> {
    pub(super) name: &'a str,
    pub(super) address: String,
    pub(super) outcome: Result<&'a Outcome, &'a String>,
}

#[derive(Serialize)]
pub(super) struct Document<'a> {
    dry_run: bool,
    devices: Vec<DeviceDocument<'a>>,
}

#[derive(Serialize)]
struct DeviceDocument<'a> {
    name: &'a str,
    address: &'a str,
    ok: bool,
    #[serde(flatten)]
    outcome: Option<&'a Outcome>,
    error: Option<&'a str>,
}

/// The results for programs.
pub(super) fn document<'a>(rows: &'a [Row<'a>], dry_run: bool) -> Document<'a> {
    let device = |row: &'a Row<'a>| DeviceDocument {
        name: row.name,
        address: &row.address,
        ok: row.outcome.is_ok(),
        outcome: row.outcome.ok(),
        error: row.outcome.err().map(String::as_str),
    };
    Document {
        dry_run,
        devices: rows.iter().map(device).collect(),
    }
}

/// The results for people.
pub(super) fn table(rows: &[Row<'_>], dry_run: bool) -> String {
    let told = |row: &Row<'_>| match row.outcome {
        Ok(outcome) => words(outcome, dry_run),
        Err(error) => format!("FAILED: {error}"),
    };
    match rows {
        [row] => format!("{}: {}", row.name, told(row)),
        rows => {
            let lines = rows
                .iter()
                .map(|row| [row.name.to_owned(), row.address.clone(), told(row)]);
            tables::plain(["DEVICE", "LOGIN", "OUTCOME"], lines)
        }
    }
}

fn words(outcome: &Outcome, dry_run: bool) -> String {
    let changes = outcome.changes.join("; ");
    match (&outcome.agent, outcome.changes.is_empty()) {
        (_, true) if dry_run => "nothing would be done".to_owned(),
        (_, false) if dry_run => format!("would {changes}"),
        (Some(agent), true) => format!("nothing to do, says hello with {agent}"),
        (Some(agent), false) => format!(
            "deployed, says hello with {agent} as {}",
            outcome.device.as_deref().unwrap_or_default()
        ),
        (None, _) => "not heard".to_owned(),
    }
}
