//! Shows the progress of runs: lines that change on a terminal, and a line per change elsewhere. It does not wait; [`super::wait`] does.

use std::{
    collections::BTreeMap,
    io,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use regatta_types::{RunId, documents::RunPhase};

use regatta_terminal::fit;
use regatta_text::{escape, escape_lines};

use super::{context::tell, run_lines::RunLines};
use crate::exit::Failure;
use regatta_lab_runs::least_seconds;
use regatta_lab_store::{RunRow, Store};
use regatta_lab_views::wording::{self, run_text};

/// The interval between two lines of a log about a waiting run.
const WAIT_LINES: Duration = Duration::from_secs(60);

/// Returns the runs' rows, in the order of `ids`.
pub(crate) fn rows(store: &Store, ids: &[RunId]) -> Result<Vec<RunRow>, Failure> {
    let mut rows = Vec::with_capacity(ids.len());
    for &id in ids {
        rows.push(
            store
                .runs()
                .get(id)?
                .ok_or_else(|| Failure::could_not(format!("run {id} is missing from the store")))?,
        );
    }
    Ok(rows)
}

/// The display of progress.
pub(crate) struct View {
    terminal: Option<RunLines>,
    shown: BTreeMap<RunId, Shown>,
}

#[derive(Default)]
struct Shown {
    phase: Option<RunPhase>,
    over: bool,
    running_since: Option<Instant>,
    /// The time when a log's last line about a wait was printed.
    waited: Option<Instant>,
}

impl View {
    /// Creates a display of this many runs, drawn in place when `lively`, otherwise with a line per change.
    pub(crate) fn new(lively: bool, runs: usize) -> Self {
        Self {
            terminal: lively.then(|| RunLines::new(runs)),
            shown: BTreeMap::new(),
        }
    }

    /// Shows the state of a run. `absent` means that its device sends no messages.
    pub(crate) fn show(&mut self, row: &RunRow, bytes: u64, absent: Option<&str>) {
        let shown = self.shown.entry(row.id).or_default();
        if shown.over {
            return;
        }
        let phase = row.shown_phase();
        if phase == RunPhase::Running {
            shown.running_since.get_or_insert_with(Instant::now);
        }
        let changed = shown.phase != Some(phase) || row.is_over();
        shown.phase = Some(phase);
        shown.over = row.is_over();
        let subject = run_text::subject(row);
        let news = news(row, phase, bytes, shown.running_since, absent);
        match &mut self.terminal {
            Some(lines) => lines.show(row, &on_terminal(&subject, &news)),
            // A log only needs the start and the result of a run, and what it waits for.
            None if changed && (phase == RunPhase::Running || row.is_over() || row.is_unsealed()) => {
                tell(&format!("{subject}: {news}"));
            }
            None if phase == RunPhase::Preparing
                && row.state.reason.is_some()
                && shown.waited.is_none_or(|at| at.elapsed() >= WAIT_LINES) =>
            {
                shown.waited = Some(Instant::now());
                tell(&format!("{subject}: {news}"));
            }
            None => {}
        }
    }

    /// Prints a sentence above the runs.
    pub(crate) fn note(&self, sentence: &str) {
        match &self.terminal {
            Some(lines) => lines.print(&fit(&escape_lines(sentence), &io::stderr())),
            None => tell(sentence),
        }
    }

    /// Leaves the drawn lines on the terminal.
    pub(crate) fn leave(&self) {
        self.terminal.iter().for_each(RunLines::leave);
    }

    /// Leaves the results of runs that are over. A report of those without a result follows, so that they are not printed here.
    pub(crate) fn leave_results(&self, rows: &[RunRow]) {
        self.terminal.iter().for_each(|lines| lines.leave_results(rows));
    }
}

/// Joins a run's subject and state in one line, or in several lines on a narrow terminal, which break between words.
fn on_terminal(subject: &str, news: &str) -> String {
    let columns = console::Term::stderr().size_checked().map(|(_, columns)| columns);
    in_columns(subject, news, columns.map(usize::from))
}

fn in_columns(subject: &str, news: &str, columns: Option<usize>) -> String {
    /// The columns of the spinner and of the separator.
    const BESIDE: usize = 4;
    const INDENT: &str = "\n    ";
    let length = |text: &str| text.chars().count();
    let Some(columns) = columns.filter(|columns| length(subject) + length(news) + BESIDE > *columns) else {
        return format!("{subject}: {news}");
    };
    let mut text = subject.to_owned();
    let mut column = columns;
    for word in news.split(' ') {
        if column + 1 + length(word) >= columns {
            text.push_str(INDENT);
            column = INDENT.len() - 1;
        } else {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += length(word);
    }
    text
}

fn news(
    row: &RunRow,
    phase: RunPhase,
    bytes: u64,
    running_since: Option<Instant>,
    absent: Option<&str>,
) -> String {
    let now = Timestamp::now();
    if row.is_over() {
        return run_text::result_and_time(row, now);
    }
    let seconds = running_since.map_or(0, |since| since.elapsed().as_secs());
    let since = run_text::started(row, now).map_or_else(String::new, |at| {
        format!(", since {at} {}", wording::zone_name(now))
    });
    let state = match phase {
        RunPhase::Queued if row.spec_sha256.is_none() => "queued".to_owned(),
        RunPhase::Running => match least_seconds(&row.draft.spec) {
            Some(least) if seconds == 0 => format!("running, for at least {least} s{since}"),
            Some(least) => format!("running for {seconds} of at least {least} s{since}"),
            None => format!("running for {seconds} s{since}"),
        },
        _ if row.is_unsealed() => {
            let reason = escape(row.state.reason.as_deref().unwrap_or_default());
            format!(
                "{phase}: {reason}; the device tries again, and `regatta runs give-up` stops waiting for it"
            )
        }
        RunPhase::Draining | RunPhase::Failed | RunPhase::Aborted => {
            format!("{phase}, {} delivered", wording::bytes(bytes))
        }
        RunPhase::Preparing => {
            let waits = run_text::waits_for(row).map_or_else(String::new, |why| format!(": {why}"));
            format!("{phase}{waits}")
        }
        phase => phase.to_string(),
    };
    absent.map_or_else(|| state.clone(), |absent| format!("{state}, {absent}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words() {
        let subject = "boat-1 digits Offline PerformanceOnly, null";
        let news = "INVALID 2.971 M samples/s (simulated, not a result, short), 0.0160 s from 05:45:27 UTC";
        assert_eq!(
            in_columns(subject, "queued", Some(80)),
            format!("{subject}: queued")
        );
        assert_eq!(in_columns(subject, news, None), format!("{subject}: {news}"));
        let text = in_columns(subject, news, Some(80));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.iter().all(|line| line.chars().count() < 80), "{text}");
        assert_eq!((lines[0], lines[2]), (subject, "    05:45:27 UTC"));
    }
}
