//! A PTDaemon as a child process: its output goes to a file, and dropping it ends the process.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, Write as _},
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};

use super::error::ServerError;
use crate::protocol::file_error::FileError;

/// How long PTDaemon may take to end.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

/// What the thread that copies the output knows.
#[derive(Debug, Default)]
struct PtdConsole {
    last_line: String,
    /// The first write that failed.
    error: Option<io::Error>,
}

/// A running PTDaemon. It is ended when this is dropped.
#[derive(Debug)]
pub(super) struct PtdProcess {
    child: Child,
    console: Arc<Mutex<PtdConsole>>,
    copier: Option<JoinHandle<()>>,
}

impl PtdProcess {
    /// Starts PTDaemon. What it prints is appended to the file `output`.
    pub(super) fn start(program: &str, arguments: &[String], output: &Path) -> Result<Self, ServerError> {
        let file = File::options().create(true).append(true).open(output);
        let file = file.map_err(FileError::at("write", output))?;
        let cannot_start = |source| ServerError::PtdStart {
            program: program.to_owned(),
            source,
        };
        let (reader, writer) = io::pipe().map_err(cannot_start)?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            // Its times are then UTC.
            .env("TZ", "UTC")
            .stdin(Stdio::null())
            .stdout(writer.try_clone().map_err(cannot_start)?)
            .stderr(writer)
            // Ctrl-C reaches the server alone, which then stops the meter first.
            .process_group(0);
        end_with_this_thread(&mut command);
        let child = command.spawn().map_err(cannot_start)?;
        // The command has the pipe's writing end; the reader would never see its end.
        drop(command);
        let console = Arc::new(Mutex::new(PtdConsole::default()));
        let copier = {
            let console = Arc::clone(&console);
            thread::spawn(move || copy_lines(reader, file, &console))
        };
        Ok(Self {
            child,
            console,
            copier: Some(copier),
        })
    }

    /// How it has ended, once it has.
    pub(super) fn end(&mut self) -> Option<String> {
        match self.child.try_wait() {
            Ok(None) => None,
            Ok(Some(status)) => Some(status.to_string()),
            Err(error) => Some(error.to_string()),
        }
    }

    /// As [`Self::end`], but waits a moment: a closed connection is seen before the end of the process.
    pub(super) fn end_within(&mut self, longest: Duration) -> Option<String> {
        let begun = Instant::now();
        loop {
            match self.end() {
                None if begun.elapsed() < longest => thread::sleep(PAUSE),
                end => return end,
            }
        }
    }

    /// The last line that it printed.
    pub(super) fn last_words(&self) -> String {
        let console = self.console.lock().unwrap_or_else(PoisonError::into_inner);
        console.last_line.clone()
    }

    /// Fails when the file of its output could not be written.
    pub(super) fn check_output(&self, output: &Path) -> Result<(), FileError> {
        let mut console = self.console.lock().unwrap_or_else(PoisonError::into_inner);
        match console.error.take() {
            None => Ok(()),
            Some(error) => Err(FileError::at("write", output)(error)),
        }
    }

    /// Ends it, and waits until its output is complete.
    pub(super) fn terminate(&mut self) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            if self.end().is_none() {
                let _ = kill_process_group(pid, Signal::TERM);
                self.end_within(PATIENCE);
            }
            // The whole process group, which usually has no other member left.
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let _ = self.child.wait();
        if let Some(copier) = self.copier.take() {
            // Only a panic of the thread is an error here, and was printed.
            let _ = copier.join();
        }
    }
}

impl Drop for PtdProcess {
    fn drop(&mut self) {
        self.terminate();
    }
}

/// Lets the kernel end PTDaemon when the server is killed. The thread that serves the session ends later than PTDaemon.
#[cfg(target_os = "linux")]
fn end_with_this_thread(command: &mut Command) {
    let server = rustix::process::getpid();
    let follow = move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
        // The server may have been killed before.
        match rustix::process::getppid() == Some(server) {
            true => Ok(()),
            false => Err(io::Error::from(io::ErrorKind::BrokenPipe)),
        }
    };
    // SAFETY: between fork and exec, `follow` only makes two system calls and allocates nothing.
    unsafe { command.pre_exec(follow) };
}

/// Other systems cannot do that.
#[cfg(not(target_os = "linux"))]
fn end_with_this_thread(_: &mut Command) {}

/// Copies lines to a file until the last writer has ended. A full disk does not block PTDaemon.
fn copy_lines(reader: io::PipeReader, mut file: File, console: &Mutex<PtdConsole>) {
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
        let written = file.write_all(&line);
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        line.clear();
        let mut console = console.lock().unwrap_or_else(PoisonError::into_inner);
        if !text.is_empty() {
            console.last_line = text;
        }
        if let (Err(error), None) = (written, &console.error) {
            console.error = Some(error);
        }
    }
}
