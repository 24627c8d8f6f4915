//! One of the official programs as a child process: its output as lines and in a file, and its end.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, Write as _},
    os::unix::process::CommandExt as _,
    path::Path,
    process::{ChildStdin, Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};

/// How long a program may take to end by itself. The server restores the meter's ranges and waits up to 10 s for PTDaemon; the
/// supervisor gives it 25 s.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(50);

/// A running program in a process group of its own. It is ended when this is dropped.
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
        let (send, lines) = mpsc::channel();
        thread::spawn(move || {
            let mut reader = BufReader::new(reader);
            let mut line = Vec::new();
            while reader.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
                // A full disk must not block the program; the session's own files show what is missing.
                let _ = copy.write_all(&line);
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                line.clear();
                if send.send(text).is_err() {
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

    /// The lines that were printed since the last call.
    pub(super) fn new_lines(&mut self) -> Vec<String> {
        self.lines.try_iter().collect()
    }

    /// Writes a line to its standard input.
    pub(super) fn write_line(&mut self, line: &str) {
        if let Some(input) = &mut self.input {
            // A program that no longer reads has ended, which its exit status shows.
            let _ = writeln!(input, "{line}").and_then(|()| input.flush());
        }
    }

    /// Its exit status, once it has ended.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.process.try_wait().ok().flatten()
    }

    /// Whether it has ended.
    pub(super) fn has_ended(&mut self) -> bool {
        self.ended().is_some()
    }

    /// Closes its standard input, waits for its end, and ends its whole group if it continues.
    pub(super) fn stop(&mut self) {
        self.input = None;
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE && !self.has_ended() {
            thread::sleep(PAUSE);
        }
        self.kill();
    }

    fn kill(&mut self) {
        if let Some(group) = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw) {
            // Usually nothing is left of the group.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.process.wait();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.input = None;
        self.kill();
    }
}
