//! The workload: a shell command in a separate process group, which always ends.

use std::{
    os::unix::process::CommandExt as _,
    process::{Child, Command},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};

use super::{error::ClientError, server_link::ServerLink};

const TICK: Duration = Duration::from_millis(20);
/// How long the workload may take to end when it must.
const PATIENCE: Duration = Duration::from_secs(10);

/// A running workload. It is ended when this is dropped.
pub(super) struct WorkloadProcess(Child);

impl WorkloadProcess {
    /// Starts a command of the shell, with this process's input and output.
    pub(super) fn start(command: &str) -> Result<Self, ClientError> {
        let child = Command::new("sh").args(["-c", command]).process_group(0).spawn();
        Ok(Self(child.map_err(ClientError::Shell)?))
    }

    /// Waits for the workload. Kills it when the server disconnects, because its figures would be lost.
    pub(super) fn wait(mut self, link: &ServerLink<'_>) -> Result<(), ClientError> {
        loop {
            match self.0.try_wait().map_err(ClientError::Shell)? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(ClientError::Workload(status)),
                None => link.check()?,
            }
            thread::sleep(TICK);
        }
    }
}

impl Drop for WorkloadProcess {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(Some(_))) {
            return;
        }
        if let Some(group) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::TERM);
            let begun = Instant::now();
            while begun.elapsed() < PATIENCE && matches!(self.0.try_wait(), Ok(None)) {
                thread::sleep(TICK);
            }
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.0.wait();
    }
}
