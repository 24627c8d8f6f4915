//! The reports of a machine while a session goes on: the output of `watch.py`, which runs there beside the official programs.

use std::{path::Path, process::Command};

use regatta_power::session::{Program, SessionError, start_here};
use serde::{Deserialize, Serialize};

use super::{Machine, NtpAnswer, remote_program::SupervisedProgram};

/// The program that watches a machine.
const WATCH: &str = include_str!("watch.py");

/// The parameters of a watch.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct WatchRequest<'a> {
    /// The session, by which a search finds the process.
    pub(crate) session: &'a str,
    /// The NTP server.
    pub(crate) ntp: &'a str,
    /// The directory whose disk gets the session's files.
    pub(crate) directory: &'a str,
}

/// A line of the program. Its texts come from another machine.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct WatchReport {
    /// Seconds by which the clock was stepped since the program began.
    pub(crate) step: f64,
    /// Free space in MiB.
    pub(crate) free_mib: Option<u64>,
    /// The NTP server's answer, in some lines.
    pub(crate) ntp: Option<NtpAnswer>,
}

impl Machine {
    /// Starts watching the machine. The lines also go to the file `output`.
    ///
    /// # Errors
    /// [`SessionError`]
    pub(crate) fn watch(
        &self,
        request: &WatchRequest<'_>,
        output: &Path,
    ) -> Result<Box<dyn Program>, SessionError> {
        let doing = "watching the machine";
        let failed = |reason: String| SessionError::Machine {
            machine: self.name(),
            doing,
            reason,
        };
        let line = serde_json::to_string(request).map_err(|error| failed(error.to_string()))?;
        let mut program = match &self.link {
            Some(link) => {
                let words = &[request.session];
                SupervisedProgram::start_program(link, doing, &self.python, WATCH, words, output)?
            }
            None => {
                let mut command = Command::new(&self.python);
                command.args(["-c", WATCH, request.session]);
                start_here(command, output).map_err(|error| failed(error.to_string()))?
            }
        };
        program.write_line(&line);
        Ok(program)
    }
}
