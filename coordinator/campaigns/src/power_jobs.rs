//! Power sessions of campaigns. Each is a `regatta power run` of its own, which leases the meter and requests its two runs. It ends when its
//! standard input closes: the coordinator is gone then, or requests its end. [`super::power_end`] finds its result.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufRead as _, Write as _},
    process::{Child, Command, Stdio},
};

use serde::{Deserialize, Serialize};

use regatta_lab_store::{
    RunRequest,
    workspace::{Workspace, make_directory},
};
use regatta_types::DeviceId;

/// The only line that a session's command reads.
#[derive(Debug, Serialize, Deserialize)]
pub struct PowerJob {
    /// The new session's id.
    pub session: String,
    /// The device.
    pub device: DeviceId,
    /// The run, which is made twice.
    pub request: RunRequest,
}

impl PowerJob {
    /// Reads the line from standard input.
    ///
    /// # Errors
    /// Returns an error when there is no such line.
    pub fn receive() -> io::Result<Self> {
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }
}

/// The commands of sessions that this process started.
#[derive(Debug, Default)]
pub(super) struct PowerJobs {
    running: BTreeMap<String, SessionCommand>,
}

#[derive(Debug)]
struct SessionCommand {
    child: Child,
    meter: String,
}

/// The state of a session's command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JobState {
    /// The command runs.
    Running,
    /// The command has ended.
    Ended,
    /// Another process started it.
    Unknown,
}

impl PowerJobs {
    /// Creates it without sessions.
    pub(super) const fn new() -> Self {
        Self {
            running: BTreeMap::new(),
        }
    }

    /// Starts a session with a meter.
    ///
    /// # Errors
    /// Returns an error when the command cannot be started.
    pub(super) fn begin(&mut self, job: &PowerJob, meter: &str, workspace: &Workspace) -> io::Result<()> {
        let log = workspace.power_log(&job.session);
        if let Some(directory) = log.parent() {
            make_directory(directory)?;
        }
        let log = File::create(log)?;
        let line = serde_json::to_string(job)?;
        let child = Command::new(regatta_fsutil::own_program::own_program()?)
            .arg("--workspace")
            .arg(workspace.root())
            .args(["power", "run", "--job", "--meter", meter])
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let meter = meter.to_owned();
        let job = self
            .running
            .entry(job.session.clone())
            .insert_entry(SessionCommand { child, meter })
            .into_mut();
        if let Some(input) = &mut job.child.stdin
            && let Err(error) = writeln!(input, "{line}")
        {
            // A command that does not read has ended, and its log has the reason.
            tracing::warn!("a power session does not take its job: {error}");
        }
        Ok(())
    }

    /// Requests the early end of a session.
    pub(super) fn end(&mut self, session: &str) {
        if let Some(job) = self.running.get_mut(session) {
            job.child.stdin = None;
        }
    }

    /// Returns the state of a session's command, and forgets it if it has ended.
    ///
    /// # Errors
    /// Returns an error when the process's state cannot be read.
    pub(super) fn state(&mut self, session: &str) -> io::Result<JobState> {
        let Some(job) = self.running.get_mut(session) else {
            return Ok(JobState::Unknown);
        };
        if job.child.try_wait()?.is_none() {
            return Ok(JobState::Running);
        }
        self.running.remove(session);
        Ok(JobState::Ended)
    }

    /// Returns whether a session of this process uses or will use a meter.
    pub(super) fn uses_meter(&self, meter: &str) -> bool {
        self.running.values().any(|job| job.meter == meter)
    }
}
