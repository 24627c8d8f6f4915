//! The progress of a session, read from the output of the official programs.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use super::{
    failure::SessionFailure,
    phase::{Part, SessionEvent, SessionPhase},
    program::Program,
    stop::SessionStop,
};

/// The longest time of the steps around the workload. The official ones wait for 10 s each, and for PTDaemon's start.
const MAX_STEP: Duration = Duration::from_secs(55);
/// The longest time outside the workload in which neither program prints anything: the official wait of 10 s, 15 s for PTDaemon's answer, and
/// 15 s for a stalled connection.
const MAX_SILENCE: Duration = Duration::from_secs(40);
/// The same while PTDaemon starts, for which the official server waits 30 s.
const MAX_PTD_START: Duration = Duration::from_secs(50);
/// The lines of a program that are kept, the newest ones. The files of both programs' output have all of them.
const MAX_LINES: usize = 10_000;
/// The longest line that is kept, in bytes.
const MAX_LINE: usize = 4096;
/// The words of the official server and of Regatta's own before that wait.
const STARTS_PTD: &str = "running PTDaemon";
/// Their first command to PTDaemon, after it.
const PTD_LISTENS: &str = "Hello";

/// The state of a session.
pub(super) struct Progress<'a> {
    tell: &'a mut dyn FnMut(&SessionEvent),
    phase: SessionPhase,
    server_is_ready: bool,
    ptd_starts: bool,
    step: Instant,
    /// When a program printed something.
    printed: Instant,
    sampled: Instant,
    /// When the workload of this step ended.
    worked: Option<Instant>,
    server: PrintedLines,
    client: PrintedLines,
}

/// The newest lines of a program. They come from another machine, so their number and lengths are limited.
#[derive(Default)]
struct PrintedLines(VecDeque<String>);

impl PrintedLines {
    fn add(&mut self, mut line: String) {
        line.truncate(line.floor_char_boundary(MAX_LINE));
        line.shrink_to_fit();
        if self.0.len() == MAX_LINES {
            self.0.pop_front();
        }
        self.0.push_back(line);
    }

    /// Returns the last line that is not empty.
    fn last(&self) -> Option<String> {
        let mut lines = self.0.iter().rev().map(|line| line.trim());
        lines.find(|line| !line.is_empty()).map(str::to_owned)
    }
}

impl<'a> Progress<'a> {
    pub(super) fn new(tell: &'a mut dyn FnMut(&SessionEvent)) -> Self {
        Self {
            tell,
            phase: SessionPhase::StartingServer,
            server_is_ready: false,
            ptd_starts: false,
            step: Instant::now(),
            printed: Instant::now(),
            sampled: Instant::now(),
            worked: None,
            server: PrintedLines::default(),
            client: PrintedLines::default(),
        }
    }

    pub(super) fn phase(&self) -> SessionPhase {
        self.phase
    }

    pub(super) fn enter(&mut self, phase: SessionPhase) {
        (self.phase, self.step, self.sampled) = (phase, Instant::now(), Instant::now());
        self.worked = None;
        (self.tell)(&SessionEvent::Phase(phase));
    }

    pub(super) fn sample(&mut self, watts: f64) {
        self.sampled = Instant::now();
        (self.tell)(&SessionEvent::Watts(watts));
    }

    /// The client's command has got the line with which it ends.
    pub(super) fn mark_workload_end(&mut self) {
        self.worked = Some(Instant::now());
    }

    /// The time since the workload of this step ended, where that is known.
    pub(super) fn since_workload(&self) -> Duration {
        self.worked.map_or(Duration::ZERO, |worked| worked.elapsed())
    }

    pub(super) fn server_is_ready(&self) -> bool {
        self.server_is_ready
    }

    /// The run whose workload is under way.
    pub(super) fn workload(&self) -> Option<Part> {
        match self.phase {
            SessionPhase::Workload(part) => Some(part),
            _ => None,
        }
    }

    /// The time since the last sample, or since the step began.
    pub(super) fn since_sample(&self) -> Duration {
        self.sampled.elapsed()
    }

    /// The limit that a step around the workload has exceeded, if it has: of the complete step, or of silence.
    pub(super) fn overdue(&self) -> Option<Duration> {
        let is_overdue = self.step.elapsed() > MAX_STEP;
        self.silence().or(is_overdue.then_some(MAX_STEP))
    }

    /// The limit of silence that both programs have exceeded, if they have.
    pub(super) fn silence(&self) -> Option<Duration> {
        let longest = match self.ptd_starts {
            true => MAX_PTD_START,
            false => MAX_SILENCE,
        };
        (self.printed.max(self.step).elapsed() > longest).then_some(longest)
    }

    /// Takes what both programs have printed.
    pub(super) fn read(&mut self, server: &mut dyn Program, client: Option<&mut dyn Program>) {
        for line in server.new_lines() {
            self.printed = Instant::now();
            self.ptd_starts |= line.contains(STARTS_PTD);
            self.ptd_starts &= !line.contains(PTD_LISTENS);
            if line.contains("Ready to accept connections") {
                self.server_is_ready = true;
                self.enter(SessionPhase::Connecting);
            }
            self.server.add(line);
        }
        for line in client.map(Program::new_lines).unwrap_or_default() {
            self.printed = Instant::now();
            if let Some(phase) = self.phase_of(&line) {
                self.enter(phase);
            }
            self.client.add(line);
        }
    }

    /// The step that a line of the client begins.
    fn phase_of(&self, line: &str) -> Option<SessionPhase> {
        let sent = line
            // The official client says "Sending command to the server: '...'", and Regatta's "command '...'".
            .split_once("'session,")
            .map(|(_, rest)| rest.trim_end_matches('\''));
        let part = |word: &str| match word {
            "ranging" => Some(Part::Ranging),
            "testing" => Some(Part::Testing),
            _ => None,
        };
        match sent
            .and_then(|sent| sent.split_once(','))
            .map(|(_, command)| command)
        {
            Some("done") => Some(SessionPhase::Collecting),
            Some(command) => {
                let (verb, word) = command.split_once(',')?;
                match verb {
                    "start" => part(word).map(SessionPhase::Before),
                    _ => part(word).map(SessionPhase::After),
                }
            }
            None if line.contains("Running the workload ") => match self.phase {
                SessionPhase::Before(part) => Some(SessionPhase::Workload(part)),
                _ => None,
            },
            None => None,
        }
    }

    pub(super) fn last_server_line(&self) -> Option<String> {
        self.server.last()
    }

    pub(super) fn last_client_line(&self) -> Option<String> {
        self.client.last()
    }

    /// What stopped the session, from both programs' words where they say it better.
    pub(super) fn failure(&self, phase: SessionPhase, stop: SessionStop) -> SessionFailure {
        SessionFailure::explain(phase, stop, &self.server.0, &self.client.0)
    }
}

#[cfg(test)]
mod tests {
    use regatta_types::documents::EndCause;

    use super::*;
    use crate::session::{program::ProgramEnd, workload::WorkloadError};

    /// A program whose output is known.
    struct Printed(Vec<String>);

    impl Program for Printed {
        fn new_lines(&mut self) -> Vec<String> {
            std::mem::take(&mut self.0)
        }

        fn write_line(&mut self, _line: &str) {}

        fn end(&mut self) -> Option<ProgramEnd> {
            None
        }

        fn stop(&mut self) {}
    }

    #[test]
    fn the_last_line_of_a_program_explains_its_end() {
        let mut tell = |_: &SessionEvent| {};
        let mut progress = Progress::new(&mut tell);
        let error = "configparser.NoOptionError: No option 'devicetype' in section: 'ptd'";
        let lines = ["Traceback (most recent call last):", error, ""].map(str::to_owned);
        progress.read(&mut Printed(lines.to_vec()), None);
        let stop = SessionStop::ServerNotReady {
            end: ProgramEnd::Failed("exit code 1".to_owned()),
            last_line: progress.last_server_line(),
        };
        let failure = progress.failure(progress.phase(), stop);
        assert_eq!(
            failure.to_string(),
            format!(
                "the session has failed while starting the server and PTDaemon: the server has ended before it was ready (exit code 1); \
                 its last line: {error}"
            )
        );
        assert_eq!(progress.last_client_line(), None);
    }

    #[test]
    fn a_failure_has_the_cause_of_its_workload_whatever_the_programs_print() {
        let mut tell = |_: &SessionEvent| {};
        let mut progress = Progress::new(&mut tell);
        progress.read(&mut Printed(vec!["already occupied".to_owned()]), None);
        let stop = SessionStop::Workload(WorkloadError::new(
            EndCause::Invalid,
            "the ranging run is INVALID",
        ));
        let failure = progress.failure(SessionPhase::Workload(Part::Ranging), stop);
        assert_eq!(failure.end_cause(), EndCause::Invalid);
        assert_eq!(
            failure.to_string(),
            "the session has failed while ranging: the workload runs: PTDaemon's port is in use (the ranging run is INVALID)"
        );
        assert!(failure.hint.contains("--ptd-port"));
        let silent = progress.failure(SessionPhase::Connecting, SessionStop::BothSilent(MAX_SILENCE));
        assert_eq!(
            (silent.end_cause(), silent.is_system_lost()),
            (EndCause::Infrastructure, false)
        );
    }

    #[test]
    fn a_program_that_prints_without_end_takes_bounded_memory() {
        let mut lines = PrintedLines::default();
        for _ in 0..MAX_LINES + 5 {
            lines.add("ä".repeat(MAX_LINE));
        }
        assert_eq!(lines.0.len(), MAX_LINES);
        assert!(lines.0.iter().all(|line| line.len() <= MAX_LINE));
    }

    #[test]
    fn the_time_after_a_workload_counts_until_the_next_step() {
        let mut tell = |_: &SessionEvent| {};
        let mut progress = Progress::new(&mut tell);
        progress.enter(SessionPhase::Workload(Part::Ranging));
        assert_eq!(progress.since_workload(), Duration::ZERO);
        progress.mark_workload_end();
        std::thread::sleep(Duration::from_millis(2));
        assert!(progress.since_workload() > Duration::ZERO);
        progress.enter(SessionPhase::After(Part::Ranging));
        assert_eq!(progress.since_workload(), Duration::ZERO);
    }
}
