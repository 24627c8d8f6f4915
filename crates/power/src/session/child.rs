//! One of the official programs, under its supervisor, as a child process: its output as lines and in a file, and its end.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    os::unix::process::CommandExt as _,
    path::Path,
    process::{ChildStdin, Command, Stdio},
    sync::mpsc::{self, Receiver, TrySendError},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};

use super::program::{Program, ProgramEnd};

/// How long a program may take to end by itself. The server restores the meter's ranges and waits up to 10 s for PTDaemon; the
/// supervisor gives it 18 s.
const PATIENCE: Duration = Duration::from_secs(23);
const PAUSE: Duration = Duration::from_millis(50);
/// The bytes that are read at once of a line without an end.
const MAX_READ: u64 = 1 << 20;
/// The longest line that is passed on, in bytes.
const MAX_LINE: usize = 4096;
/// The lines that wait to be read.
const MAX_LINES: usize = 10_000;

/// A running program in a separate process group. It is ended when this is dropped.
pub(super) struct Child {
    process: std::process::Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Child {
    /// Starts a program. What it prints goes to the file `output`, too.
    pub(super) fn start(mut command: Command, output: &Path) -> io::Result<Self> {
        let mut copy = File::create(output)?;
        let (reader, writer) = io::pipe()?;
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(writer.try_clone()?)
            .stderr(writer)
            .process_group(0)
            .spawn()?;
        // The command still has the pipe's writing end; the reader would never see its end.
        drop(command);
        let (send, lines) = mpsc::sync_channel(MAX_LINES);
        thread::spawn(move || {
            let mut reader = BufReader::new(reader);
            let mut line = Vec::new();
            while (&mut reader)
                .take(MAX_READ)
                .read_until(b'\n', &mut line)
                .is_ok_and(|length| length > 0)
            {
                // A full disk must not block the program; the session's own files show what is missing.
                let _ = copy.write_all(&line);
                line.truncate(MAX_LINE);
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                line.clear();
                // Lines that nobody reads in time are only in the file.
                if let Err(TrySendError::Disconnected(_)) = send.try_send(text) {
                    break;
                }
            }
        });
        let input = process.stdin.take();
        Ok(Self {
            process,
            input,
            lines,
        })
    }

    fn kill(&mut self) {
        if let Some(group) = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw) {
            // Usually nothing is left of the group.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.process.wait();
    }
}

impl Program for Child {
    fn new_lines(&mut self) -> Vec<String> {
        self.lines.try_iter().collect()
    }

    fn write_line(&mut self, line: &str) {
        if let Some(input) = &mut self.input {
            let _ = writeln!(input, "{line}").and_then(|()| input.flush());
        }
    }

    fn end(&mut self) -> Option<ProgramEnd> {
        let status = self.process.try_wait().ok().flatten()?;
        Some(match status.success() {
            true => ProgramEnd::Succeeded,
            false => ProgramEnd::Failed(status.to_string()),
        })
    }

    fn stop(&mut self) {
        self.input = None;
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE && self.end().is_none() {
            thread::sleep(PAUSE);
        }
        self.kill();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.end().is_none() {
            self.stop();
        }
    }
}
