//! The run process: starts it, reads its event lines, waits for its end, and kills it. Other modules decide what the
//! events mean.

use std::{
    fs::OpenOptions,
    io,
    os::unix::process::ExitStatusExt as _,
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use regatta_types::documents::end_reason;
use rustix::process::{Pid, Signal};
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, BufReader},
    process::{Child, Command},
    sync::mpsc,
    time::timeout,
};

use crate::{
    daemon::{
        runs::{job::ProcessIdentity, leftover_process::signal_group, run_dir::RunDir},
        supervisor,
    },
    run_process::{daemon_bond, event::RunProcessEvent},
};

/// File name of the run process's standard error.
const RUN_LOG: &str = "run.log";
/// Longest event line in bytes. A failure reason may contain a long chain of causes.
const MAX_LINE: u64 = 64 * 1024;
/// Time that the pipe may stay open after the process has ended, if a child process holds it.
const PIPE_PATIENCE: Duration = Duration::from_millis(500);
/// An event of a run process.
#[derive(Debug)]
pub(crate) enum ProcessEvent {
    /// The process wrote an event.
    Reported(RunProcessEvent),
    /// The process has ended. This is the last event.
    Ended(io::Result<ExitStatus>),
}

/// A running run process, in its own process group.
#[derive(Debug)]
pub(crate) struct RunProcess {
    pid: Pid,
    identity: ProcessIdentity,
    events: mpsc::Receiver<ProcessEvent>,
}

impl RunProcess {
    /// Starts the daemon's own binary with `exec` and the run's spec.
    pub(crate) fn start(dir: &RunDir, scratch: Option<&Path>) -> io::Result<Self> {
        let run_log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(dir.files().join(RUN_LOG))?;
        // This is the running binary, even if an upgrade has replaced the file.
        let mut command = Command::new("/proc/self/exe");
        command.arg0("regatta-agent").arg("exec").arg(dir.spec_path());
        command.env(daemon_bond::VARIABLE, std::process::id().to_string());
        for variable in supervisor::VARIABLES {
            command.env_remove(variable);
        }
        if let Some(scratch) = scratch {
            command.env("MLPERF_SCRATCH_PATH", scratch);
        }
        command
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(run_log);
        let mut child = command.spawn()?;
        let pid = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw);
        let (Some(pid), Some(stdout)) = (pid, child.stdout.take()) else {
            return Err(io::Error::other("the run process has ended at once"));
        };
        let (sender, events) = mpsc::channel(16);
        tokio::spawn(listen(child, BufReader::new(stdout), sender));
        Ok(Self {
            pid,
            identity: ProcessIdentity::of(pid),
            events,
        })
    }

    pub(crate) fn identity(&self) -> ProcessIdentity {
        self.identity.clone()
    }

    /// Returns the next event. Cancel-safe.
    pub(crate) async fn next(&mut self) -> ProcessEvent {
        let lost = || ProcessEvent::Ended(Err(io::Error::other("the run process was lost sight of")));
        self.events.recv().await.unwrap_or_else(lost)
    }

    /// Sends SIGTERM to the process group.
    pub(crate) fn terminate(&self) {
        signal_group(self.pid, Signal::TERM);
    }

    /// Sends SIGKILL to the process group.
    pub(crate) fn kill(&self) {
        signal_group(self.pid, Signal::KILL);
    }
}

async fn listen(
    mut child: Child,
    mut lines: impl AsyncBufRead + Unpin + Send,
    sender: mpsc::Sender<ProcessEvent>,
) {
    let ended = tokio::select! {
        () = pass_on_events(&mut lines, &sender) => child.wait().await,
        ended = child.wait() => {
            // The last lines may still be in the pipe.
            let _ = timeout(PIPE_PATIENCE, pass_on_events(&mut lines, &sender)).await;
            ended
        }
    };
    // The receiver is gone when the daemon stops.
    let _ = sender.send(ProcessEvent::Ended(ended)).await;
}

/// Forwards event lines until the pipe closes. Other lines are logged and dropped.
async fn pass_on_events(lines: &mut (impl AsyncBufRead + Unpin + Send), sender: &mpsc::Sender<ProcessEvent>) {
    let mut line = Vec::new();
    loop {
        line.clear();
        match lines.take(MAX_LINE).read_until(b'\n', &mut line).await {
            Ok(0) => return,
            Ok(_) => {}
            Err(e) => {
                tracing::warn!("the run process's events cannot be read: {e}");
                return;
            }
        }
        match serde_json::from_slice(&line) {
            Ok(event) => {
                if sender.send(ProcessEvent::Reported(event)).await.is_err() {
                    return;
                }
            }
            Err(_) => tracing::warn!(
                "the run process wrote something that is not an event: {}",
                String::from_utf8_lossy(line.get(..200).unwrap_or(&line)).trim_end()
            ),
        }
    }
}

/// Describes for users how a process failed.
pub(crate) fn describe_end(ended: &io::Result<ExitStatus>) -> String {
    match ended {
        Ok(status) => match (status.signal(), status.code()) {
            (Some(signal), _) => {
                format!("{}{signal}{}", end_reason::PROCESS_KILLED, signal_name(signal))
            }
            (None, Some(code)) => {
                format!("the run process ended with exit code {code}; {RUN_LOG} may contain the reason")
            }
            (None, None) => "the run process ended in an unknown way".to_owned(),
        },
        Err(e) => format!("{}: {e}", end_reason::PROCESS_UNKNOWN),
    }
}

/// Returns the name of a signal that ends processes.
fn signal_name(signal: i32) -> &'static str {
    const NAMES: [(i32, &str); 10] = [
        (1, " (SIGHUP)"),
        (2, " (SIGINT)"),
        (3, " (SIGQUIT)"),
        (4, " (SIGILL)"),
        (6, " (SIGABRT)"),
        (7, " (SIGBUS)"),
        (8, " (SIGFPE)"),
        (9, " (SIGKILL)"),
        (11, " (SIGSEGV)"),
        (15, " (SIGTERM)"),
    ];
    NAMES
        .iter()
        .find(|(number, _)| *number == signal)
        .map_or("", |(_, name)| *name)
}
