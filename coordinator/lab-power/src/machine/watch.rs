//! The reports of a machine during a session, parsed from the output of `watch.py`, which runs there beside the official programs.

use std::{path::Path, process::Command};

use regatta_power::session::{Program, SessionError, start_here};
use serde::{Deserialize, Serialize};

use super::{Machine, NtpAnswer, remote_program::SupervisedProgram};

/// The program that watches a machine.
const WATCH: &str = include_str!("watch.py");

/// The parameters of a watch.
#[derive(Debug, Clone, Serialize)]
pub struct WatchRequest<'a> {
    /// The session, by which a search finds the process.
    pub session: &'a str,
    /// The NTP server.
    pub ntp: &'a str,
    /// The directory whose disk gets the session's files.
    pub directory: &'a str,
}

/// The program's first line.
#[derive(Serialize)]
struct WatchLine<'a> {
    #[serde(flatten)]
    request: &'a WatchRequest<'a>,
    /// The seconds without a line of standard input after which the program ends.
    silence_s: Option<u64>,
}

/// The silence after which the program on another machine ends. On this machine it has no such limit: nothing sends lines there, and its
/// standard input closes when this process ends.
const REMOTE_SILENCE_S: u64 = 60;

/// A line of the program. Its texts come from another machine.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct WatchReport {
    /// Seconds by which the clock was stepped since the program began.
    pub step: f64,
    /// Free space in MiB.
    pub free_mib: Option<u64>,
    /// The NTP server's answer, in some lines.
    pub ntp: Option<NtpAnswer>,
}

impl Machine {
    /// Starts watching the machine. The lines also go to the file `output`.
    ///
    /// # Errors
    /// [`SessionError`]
    pub fn watch(&self, request: &WatchRequest<'_>, output: &Path) -> Result<Box<dyn Program>, SessionError> {
        let doing = "watching the machine";
        let failed = |source: Box<dyn std::error::Error + Send + Sync>| SessionError::Machine {
            machine: self.name(),
            doing,
            source,
        };
        let line = WatchLine {
            request,
            silence_s: self.link.is_some().then_some(REMOTE_SILENCE_S),
        };
        let line = serde_json::to_string(&line).map_err(|error| failed(error.into()))?;
        let mut program = match &self.link {
            Some(link) => {
                let words = &[request.session];
                SupervisedProgram::start_program(link, doing, &self.python, WATCH, words, output)?
            }
            None => {
                let mut command = Command::new(&self.python);
                command.args(["-c", WATCH, request.session]);
                start_here(command, output).map_err(|error| failed(error.into()))?
            }
        };
        program.write_line(&line);
        Ok(program)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::PermissionsExt as _,
        thread,
        time::{Duration, Instant},
    };

    use super::*;
    use crate::machine::Programs;

    /// Python reads this when it starts: 40 of its seconds pass in one.
    const FAST_TIME: &str = "\
import time
monotonic, sleep, begun = time.monotonic, time.sleep, time.monotonic()
time.monotonic = lambda: begun + (monotonic() - begun) * 40
time.sleep = lambda seconds: sleep(seconds / 40)
";

    #[test]
    fn a_machine_here_is_watched_for_longer_than_a_silent_one_elsewhere() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("sitecustomize.py"), FAST_TIME).unwrap();
        let python = directory.path().join("python");
        let text = format!(
            "#!/bin/sh\nPYTHONPATH={} exec python3 \"$@\"\n",
            directory.path().display()
        );
        fs::write(&python, text).unwrap();
        fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
        let machine = Machine {
            link: None,
            python: python.display().to_string(),
            programs: Programs::Own,
        };
        let request = WatchRequest {
            session: "one",
            ntp: "",
            directory: "/",
        };
        let output = directory.path().join("watch.txt");
        let mut program = machine.watch(&request, &output).unwrap();
        let begun = Instant::now();
        let mut lines = 0;
        // Four minutes of the program's time.
        while begun.elapsed() < Duration::from_secs(6) {
            lines += program.new_lines().len();
            assert_eq!(program.end(), None, "after {lines} lines");
            thread::sleep(Duration::from_millis(50));
        }
        assert!(lines > 20, "{lines} lines");
        program.stop();
        assert!(program.end().is_some(), "it ends with its standard input");
    }
}
