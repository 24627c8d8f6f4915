//! An official program under its supervisor on another machine. A copy of its output is kept here.

use std::{
    fs::File,
    io::Write as _,
    path::Path,
    rc::Rc,
    thread,
    time::{Duration, Instant},
};

use regatta_power::session::{Program, ProgramEnd, SUPERVISOR, SessionError};
use regatta_ssh::{RemoteEnd, RemoteProgram};

use super::link::Link;

/// The interval of the empty lines that show the supervisor that Regatta is there.
const HEARTBEAT: Duration = Duration::from_secs(2);
/// The silence in seconds after which the supervisor ends its program. That machine detects a dead connection later.
const SILENCE: &str = "45";
/// The most bytes of a program's output that are kept in its file. The other machine decides what it prints.
const MAX_COPY: usize = 64 << 20;
/// The time that a program may take to end. The supervisor gives it 18 s.
const PATIENCE: Duration = Duration::from_secs(25);
const PAUSE: Duration = Duration::from_millis(50);

/// A running program.
pub(super) struct SupervisedProgram {
    program: RemoteProgram,
    link: Rc<Link>,
    copy: File,
    copied: usize,
    /// Lines that were read while it was stopped.
    pending: Vec<String>,
    beat: Instant,
}

impl SupervisedProgram {
    /// Starts one of the official programs on another machine. `temporary` is its directory for temporary files, or nothing.
    pub(super) fn start(
        link: &Rc<Link>,
        doing: &'static str,
        python: &str,
        temporary: &str,
        words: &[&str],
        output: &Path,
    ) -> Result<Box<dyn Program>, SessionError> {
        let mut line = vec![SILENCE, temporary, python];
        line.extend(words);
        Self::start_program(link, doing, python, SUPERVISOR, &line, output)
    }

    /// Starts a Python program that ends by itself without Regatta's lines.
    pub(super) fn start_program(
        link: &Rc<Link>,
        doing: &'static str,
        python: &str,
        program: &str,
        words: &[&str],
        output: &Path,
    ) -> Result<Box<dyn Program>, SessionError> {
        let failed = |source: Box<dyn std::error::Error + Send + Sync>| SessionError::Machine {
            machine: link.login().to_owned(),
            doing,
            source,
        };
        Ok(Box::new(Self {
            program: link
                .start(doing, python, program, words)
                .map_err(|error| failed(error.into()))?,
            link: Rc::clone(link),
            copy: File::create(output).map_err(|source| SessionError::Io {
                path: output.to_owned(),
                source,
            })?,
            copied: 0,
            pending: Vec::new(),
            beat: Instant::now(),
        }))
    }

    fn read(&mut self) {
        for line in self.program.new_lines() {
            if self.copied < MAX_COPY {
                self.copied += line.len() + 1;
                // A full disk must not end the session; its own files show what is missing.
                let _ = writeln!(self.copy, "{line}");
            }
            self.pending.push(line);
        }
    }
}

impl Program for SupervisedProgram {
    fn new_lines(&mut self) -> Vec<String> {
        if self.beat.elapsed() >= HEARTBEAT && self.program.end().is_none() {
            self.beat = Instant::now();
            self.write_line("");
        }
        self.read();
        std::mem::take(&mut self.pending)
    }

    fn write_line(&mut self, line: &str) {
        // An error shows in the program's end, or in that of the connection.
        let _ = self.program.write_line(line);
    }

    fn end(&mut self) -> Option<ProgramEnd> {
        match self.program.end() {
            Some(RemoteEnd::Code(0)) => Some(ProgramEnd::Succeeded),
            Some(RemoteEnd::Code(code)) => Some(ProgramEnd::Failed(format!("exit code {code}"))),
            Some(RemoteEnd::Signal(signal)) => Some(ProgramEnd::Failed(format!("signal {signal}"))),
            Some(RemoteEnd::Lost(why)) => Some(ProgramEnd::LinkLost(why.clone())),
            None => self.link.lost().map(ProgramEnd::LinkLost),
        }
    }

    fn stop(&mut self) {
        if self.end().is_some() {
            return;
        }
        self.program.close_input();
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE && self.end().is_none() {
            thread::sleep(PAUSE);
            self.read();
        }
    }
}
