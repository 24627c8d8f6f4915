//! The run process: starts it, reads its event lines, waits for its end, and kills it. Other modules decide what the
//! events mean.

use std::{
    fs::{self, OpenOptions},
    io,
    os::unix::process::ExitStatusExt as _,
    path::Path,
    process::{ExitStatus, Stdio},
    time::{Duration, Instant},
};

use regatta_board::FactsReader;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, BufReader},
    process::{Child, Command},
    sync::mpsc,
    time::timeout,
};

use super::{
    run_dir::{ProcessIdentity, RunDir},
    supervisor,
};
use crate::run_process::event::Event;

/// File name of the run process's standard error.
const RUN_LOG: &str = "run.log";
/// Longest event line in bytes. A failure reason may contain a long chain of causes.
const LONGEST_LINE: u64 = 64 * 1024;
/// Time that the pipe may stay open after the process has ended, if a child process holds it.
const PIPE_PATIENCE: Duration = Duration::from_millis(500);
/// Time that a leftover process may take to die.
const KILL_PATIENCE: Duration = Duration::from_secs(2);
/// Fields 3 and 22 of `/proc/PID/stat`, counted from the field after the command.
const STATE: usize = 0;
const START_TIME: usize = 19;

/// A report from a run process.
#[derive(Debug)]
pub(crate) enum ProcessNews {
    /// The process wrote an event.
    Reported(Event),
    /// The process has ended. This is the last report.
    Ended(io::Result<ExitStatus>),
}

/// A running run process, in its own process group.
#[derive(Debug)]
pub(crate) struct RunProcess {
    pid: Pid,
    identity: ProcessIdentity,
    news: mpsc::Receiver<ProcessNews>,
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
        let (sender, news) = mpsc::channel(16);
        tokio::spawn(listen(child, BufReader::new(stdout), sender));
        Ok(Self {
            pid,
            identity: identity_of(pid),
            news,
        })
    }

    /// Returns the identity of the process.
    pub(crate) fn identity(&self) -> ProcessIdentity {
        self.identity.clone()
    }

    /// Returns the next report. Cancel-safe.
    pub(crate) async fn next(&mut self) -> ProcessNews {
        let lost = || ProcessNews::Ended(Err(io::Error::other("the run process was lost sight of")));
        self.news.recv().await.unwrap_or_else(lost)
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

/// Kills a run process of an earlier daemon if it still runs, and waits until it is dead. Returns whether it was
/// running.
pub(crate) fn kill_leftover(identity: &ProcessIdentity) -> bool {
    let Some(pid) = Pid::from_raw(identity.pid) else {
        return false;
    };
    if identity.start_ticks == 0 || !is_running(pid, identity) {
        return false;
    }
    signal_group(pid, Signal::KILL);
    let begin = Instant::now();
    while is_running(pid, identity) && begin.elapsed() < KILL_PATIENCE {
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

/// Returns whether this process exists and is not a zombie.
fn is_running(pid: Pid, identity: &ProcessIdentity) -> bool {
    let is_same = identity_of(pid) == *identity;
    is_same && stat_field(pid, STATE).is_some_and(|state| state != "Z" && state != "X")
}

fn signal_group(pid: Pid, signal: Signal) {
    // The process may have ended already.
    if let Err(e) = kill_process_group(pid, signal) {
        tracing::debug!("process group {pid:?}: {e}");
    }
}

fn identity_of(pid: Pid) -> ProcessIdentity {
    ProcessIdentity {
        pid: pid.as_raw_nonzero().get(),
        start_ticks: start_ticks(pid).unwrap_or(0),
        boot_id: FactsReader::of_this_machine().boot_id().unwrap_or_default(),
    }
}

fn start_ticks(pid: Pid) -> Option<u64> {
    stat_field(pid, START_TIME)?.parse().ok()
}

/// Reads a field of `/proc/PID/stat`. Index 0 is the field after the command's closing parenthesis, because a command
/// may contain spaces and parentheses. Returns `None` if the process does not exist.
fn stat_field(pid: Pid, field: usize) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    let (_, behind_command) = stat.rsplit_once(')')?;
    behind_command
        .split_ascii_whitespace()
        .nth(field)
        .map(str::to_owned)
}

async fn listen(
    mut child: Child,
    mut lines: impl AsyncBufRead + Unpin + Send,
    sender: mpsc::Sender<ProcessNews>,
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
    let _ = sender.send(ProcessNews::Ended(ended)).await;
}

/// Forwards event lines until the pipe closes. Other lines are logged and dropped.
async fn pass_on_events(lines: &mut (impl AsyncBufRead + Unpin + Send), sender: &mpsc::Sender<ProcessNews>) {
    let mut line = Vec::new();
    loop {
        line.clear();
        match lines.take(LONGEST_LINE).read_until(b'\n', &mut line).await {
            Ok(0) => return,
            Ok(_) => {}
            Err(e) => {
                tracing::warn!("the run process's events cannot be read: {e}");
                return;
            }
        }
        match serde_json::from_slice(&line) {
            Ok(event) => {
                if sender.send(ProcessNews::Reported(event)).await.is_err() {
                    return;
                }
            }
            Err(_) => tracing::warn!(
                "the run process wrote something that is no event: {}",
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
                format!(
                    "the run process was killed by signal {signal}{}",
                    signal_name(signal)
                )
            }
            (None, Some(code)) => {
                format!("the run process ended with exit code {code}; {RUN_LOG} may say why")
            }
            (None, None) => "the run process ended in an unknown way".to_owned(),
        },
        Err(e) => format!("the run process cannot be waited for: {e}"),
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

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;

    use super::*;

    #[test]
    fn a_leftover_is_killed_and_a_later_process_of_the_same_number_is_not() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .process_group(0)
            .spawn()
            .unwrap();
        let identity = identity_of(Pid::from_child(&child));
        let other = ProcessIdentity {
            start_ticks: identity.start_ticks + 1,
            ..identity.clone()
        };
        let other_boot = ProcessIdentity {
            boot_id: "another".to_owned(),
            ..identity.clone()
        };
        assert!(!kill_leftover(&other) && !kill_leftover(&other_boot));
        assert_eq!(child.try_wait().unwrap(), None);
        assert!(kill_leftover(&identity));
        let ended = child.wait();
        assert_eq!(
            describe_end(&ended),
            "the run process was killed by signal 9 (SIGKILL)"
        );
        assert!(!kill_leftover(&identity), "it is gone");
    }
}
