//! The lines of runs on a terminal: a line for each, which changes in place. When there are more runs than the terminal has lines, those
//! that ended are printed and scroll away, and those that wait are counted in the last line. This file does not decide the text of a line.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use regatta_types::{RunId, documents::RunPhase};

use regatta_lab_store::RunRow;
use regatta_lab_views::wording::run_text;

/// The lines that stay free for the prompt, the count and a line that wraps.
const SPARE: usize = 4;
/// The lines of a terminal that does not report its size.
const USUAL: usize = 24;

/// The lines of the runs that are waited for.
pub(super) struct RunLines {
    bars: MultiProgress,
    lines: BTreeMap<RunId, ProgressBar>,
    /// The lines for runs. `None` if every run has one.
    max_lines: Option<usize>,
    /// The runs without a line that have not ended.
    waiting: BTreeSet<RunId>,
    /// The line with their number.
    count: Option<ProgressBar>,
}

impl RunLines {
    /// Creates the lines of this many runs.
    pub(super) fn new(runs: usize) -> Self {
        let lines = console::Term::stderr()
            .size_checked()
            .map_or(USUAL, |(lines, _)| lines.into());
        let max_lines = lines.saturating_sub(SPARE).max(1);
        Self {
            bars: MultiProgress::new(),
            lines: BTreeMap::new(),
            max_lines: (runs > max_lines).then_some(max_lines),
            waiting: BTreeSet::new(),
            count: None,
        }
    }

    /// Shows a run's text.
    pub(super) fn show(&mut self, row: &RunRow, text: &str) {
        match self.max_lines {
            None => self.show_line(row, text),
            Some(_) if row.is_over() => {
                self.waiting.remove(&row.id);
                if let Some(line) = self.lines.remove(&row.id) {
                    line.finish_and_clear();
                    self.bars.remove(&line);
                }
                self.print(text);
            }
            Some(max_lines) if self.lines.contains_key(&row.id) || self.has_line(row, max_lines) => {
                self.waiting.remove(&row.id);
                self.show_line(row, text);
            }
            Some(_) => {
                self.waiting.insert(row.id);
            }
        }
        self.show_count();
    }

    /// Returns whether a run gets one of the lines: runs that wait for their device get none.
    fn has_line(&self, row: &RunRow, max_lines: usize) -> bool {
        row.shown_phase() != RunPhase::Queued && self.lines.len() < max_lines
    }

    fn show_line(&mut self, row: &RunRow, text: &str) {
        let bars = &self.bars;
        let count = self.count.as_ref();
        let line = self
            .lines
            .entry(row.id)
            .or_insert_with(|| spinner_in(bars, count));
        if row.is_over() {
            line.finish_with_message(text.to_owned());
        } else {
            line.set_message(text.to_owned());
        }
    }

    fn show_count(&mut self) {
        match (self.waiting.len(), &self.count) {
            (0, Some(count)) => count.finish_and_clear(),
            (0, None) => {}
            (more, _) => {
                let bars = &self.bars;
                let count = self.count.get_or_insert_with(|| spinner_in(bars, None));
                let runs = if more == 1 { "run is" } else { "runs are" };
                count.set_message(format!("{more} more {runs} waiting"));
            }
        }
    }

    /// Prints a line above the runs.
    pub(super) fn print(&self, line: &str) {
        // A terminal that is gone is noticed elsewhere.
        drop(self.bars.println(line));
    }

    /// Leaves the drawn lines on the terminal.
    pub(super) fn leave(&self) {
        for line in self.lines.values().chain(&self.count) {
            if !line.is_finished() {
                line.abandon();
            }
        }
    }

    /// Leaves the lines of runs with a result. A report of the others follows.
    pub(super) fn leave_results(&self, rows: &[RunRow]) {
        for row in rows.iter().filter(|row| !run_text::has_result(row)) {
            if let Some(line) = self.lines.get(&row.id) {
                line.finish_and_clear();
            }
        }
        self.leave();
    }
}

/// Adds a line, above `before` if there is one. It may tick only after it is added, otherwise it would draw itself on a separate line.
fn spinner_in(bars: &MultiProgress, before: Option<&ProgressBar>) -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    let bar = match before {
        Some(before) => bars.insert_before(before, bar),
        None => bars.add(bar),
    };
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
        bar.set_style(style.tick_chars("⠋⠙⠸⠴⠦⠇ "));
    }
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}
