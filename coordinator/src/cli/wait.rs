//! Waits for runs. It only reads the store, so it can be stopped and started at any time: Ctrl-C does not end the runs. It prints the
//! commands that watch or abort them, and a second one offers to abort them.

use std::{
    io::{self, IsTerminal as _, Write as _},
    mem,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use regatta_types::RunId;

use super::{
    Context,
    context::tell,
    device_watch::DeviceWatch,
    interrupts::Interrupts,
    progress::{View, rows},
};
use crate::exit::Failure;
use regatta_lab_store::{RunRow, Store, workspace::Workspace};
use regatta_lab_views::wording::run_text;

/// Flags that decide whether a command waits for what it requested.
#[derive(Debug, clap::Args)]
pub(super) struct WaitFlags {
    /// Wait until all runs have ended (the default)
    #[arg(long, overrides_with = "no_wait")]
    wait: bool,
    /// Return immediately
    #[arg(long)]
    pub(super) no_wait: bool,
}

impl WaitFlags {
    /// Checks that a coordinator serves the workspace, unless the command does not wait. Call this before anything is queued: a command that
    /// fails is repeated, and its request would be executed twice.
    ///
    /// # Errors
    /// Returns an error when the command would wait for runs that nobody executes.
    pub(super) fn expect_served(&self, context: &Context, workspace: &Workspace) -> Result<(), Failure> {
        if self.no_wait {
            return Ok(());
        }
        expect_served(
            context,
            workspace,
            "\nor queue it for later: the same command with --no-wait",
        )
    }
}

/// Checks that a coordinator serves the workspace, before anything is queued. `alternative` is added to the hint.
///
/// # Errors
/// Returns an error when nobody would execute runs.
pub(super) fn expect_served(
    context: &Context,
    workspace: &Workspace,
    alternative: &str,
) -> Result<(), Failure> {
    if workspace.is_served() {
        return Ok(());
    }
    Err(Failure::could_not(format!(
        "no coordinator serves {}: nothing was queued",
        workspace.root().display()
    ))
    .hint(format!("start it: {}{alternative}", context.command("serve"))))
}

/// The interval for polling the store.
const PAUSE: Duration = Duration::from_millis(150);
/// The time in which a second Ctrl-C counts.
const SECOND_INTERRUPT: Duration = Duration::from_secs(5);

/// The parameters of a wait.
pub(super) struct Wait<'a> {
    pub(super) context: &'a Context,
    pub(super) workspace: &'a Workspace,
    pub(super) store: &'a Store,
    /// Whether progress is shown.
    pub(super) shows_progress: bool,
    /// The longest wait.
    pub(super) longest: Option<Duration>,
    /// Whether the command only shows runs, so that Ctrl-C just ends it.
    pub(super) is_viewer: bool,
}

impl Wait<'_> {
    /// Waits until every run is recorded, and returns the runs in the order of `ids`.
    ///
    /// # Errors
    /// Returns an error when the user interrupts, the time is over, the coordinator ends, or the store fails.
    pub(super) fn for_runs(&self, ids: &[RunId]) -> Result<Vec<RunRow>, Failure> {
        let interrupts = Interrupts::watch()?;
        let begun = Instant::now();
        let mut view = View::new(self.context.is_lively(), ids.len());
        let mut watch = DeviceWatch::default();
        let mut is_disk_full = false;
        loop {
            let rows = rows(self.store, ids)?;
            let open: Vec<RunId> = rows
                .iter()
                .filter(|row| !row.is_over())
                .map(|row| row.id)
                .collect();
            if self.shows_progress {
                let report = watch.look(&rows, self.store)?;
                report.changes.iter().for_each(|change| view.note(change));
                let was_full = mem::replace(&mut is_disk_full, self.workspace.is_disk_full());
                if is_disk_full && !was_full {
                    view.note(&format!(
                        "the disk of {} is full: logs are not accepted, and runs do not end, until there is space; free some with `{}`",
                        self.workspace.root().display(),
                        self.context.command("runs prune --older-than 30d")
                    ));
                }
                // The report that follows begins with the runs without a result.
                let shown = rows
                    .iter()
                    .filter(|row| !open.is_empty() || run_text::has_result(row));
                for row in shown {
                    let absent = report.absent.get(&row.device).map(String::as_str);
                    view.show(row, self.store.streams().committed_bytes(row.id)?, absent);
                }
            }
            if open.is_empty() {
                view.leave_results(&rows);
                return Ok(rows);
            }
            let failure = if interrupts.count() > 0 {
                view.leave();
                Some(self.interrupted(&open, &interrupts))
            } else if self.longest.is_some_and(|longest| begun.elapsed() >= longest) {
                Some(self.too_long(&open))
            } else if !self.workspace.is_served() {
                Some(self.unserved())
            } else {
                None
            };
            if let Some(failure) = failure {
                view.leave();
                return Err(failure);
            }
            thread::sleep(PAUSE);
        }
    }

    /// Returns the error when the coordinator has ended.
    pub(super) fn unserved(&self) -> Failure {
        Failure::could_not("the coordinator has ended").hint(format!(
            "start it again, and the runs continue: {}",
            self.context.command("serve")
        ))
    }

    fn too_long(&self, open: &[RunId]) -> Failure {
        Failure::could_not(format!(
            "{} in time",
            count(open, "has not ended", "have not ended")
        ))
        .hint(self.next(open))
    }

    /// Returns the commands for runs that go on.
    fn next(&self, open: &[RunId]) -> String {
        let ids: Vec<String> = open.iter().map(RunId::to_string).collect();
        let ids = ids.join(" ");
        format!(
            "watch: {}\nabort: {}",
            self.context.command(&format!("runs watch {ids}")),
            self.context.command(&format!("runs abort {ids}"))
        )
    }

    fn interrupted(&self, open: &[RunId], interrupts: &Interrupts) -> Failure {
        let goes_on = format!("interrupted: {}", count(open, "continues", "continue"));
        if self.is_viewer || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return Failure::interrupted(goes_on).hint(self.next(open));
        }
        let seconds = SECOND_INTERRUPT.as_secs();
        let next = self.next(open).replace('\n', "\n  ");
        tell(&format!(
            "\n{}\n  {next}\nCtrl-C again within {seconds} s to abort",
            count(open, "continues", "continue")
        ));
        let leave = || Failure::interrupted(&goes_on);
        if !interrupts.wait_for(2, SECOND_INTERRUPT) || !is_confirmed(&count(open, "", ""), interrupts) {
            return leave();
        }
        let mut aborted = 0;
        for run in open {
            match self.store.runs().request_abort(*run, "aborted by the user") {
                Ok(changed) => aborted += usize::from(changed),
                Err(error) => return Failure::from(error),
            }
        }
        Failure::interrupted(format!(
            "interrupted: abort requested for {aborted} of {}",
            count(open, "", "").trim()
        ))
    }
}

/// Asks whether to abort. Another Ctrl-C declines.
fn is_confirmed(runs: &str, interrupts: &Interrupts) -> bool {
    let mut terminal = io::stderr();
    // Without a terminal there is no answer either.
    let _ = write!(terminal, "\nAbort {}? [y/N] ", runs.trim());
    let _ = terminal.flush();
    let (answer, answers) = mpsc::channel();
    thread::spawn(move || {
        let mut line = String::new();
        let read = io::stdin().read_line(&mut line).map(|_| line);
        // The receiver has left when Ctrl-C was the answer.
        let _ = answer.send(read.unwrap_or_default());
    });
    while interrupts.count() < 3 {
        match answers.recv_timeout(PAUSE) {
            Ok(line) => return matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes"),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => return false,
        }
    }
    false
}

/// Returns a number of runs with its verb, such as `2 runs continue`.
fn count(runs: &[RunId], one: &str, several: &str) -> String {
    match runs.len() {
        1 => format!("1 run {one}"),
        more => format!("{more} runs {several}"),
    }
}
