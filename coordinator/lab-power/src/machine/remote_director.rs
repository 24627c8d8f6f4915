//! The director of a session on another machine: the official server there, and PTDaemon's samples.

use std::{
    path::{Path, PathBuf},
    rc::Rc,
    time::{Duration, Instant},
};

use regatta_power::session::{Director, Program, SAMPLES_NAME, SampleLog, SessionError};

use super::{Machine, link::Link, remote_program::SupervisedProgram};

/// The interval of reading PTDaemon's samples. There is one per second.
const INTERVAL: Duration = Duration::from_millis(900);

/// A director over SSH. Its session's directory there is removed when this is dropped.
pub(crate) struct RemoteDirector {
    link: Rc<Link>,
    python: String,
    server: String,
    directory: String,
    temporary: String,
    output: PathBuf,
    samples: SampleLog,
    sampled: Instant,
}

impl RemoteDirector {
    /// Makes the session's directory there. `here` is the one on this machine.
    ///
    /// # Errors
    /// [`SessionError`]
    pub(crate) fn new(
        machine: &Machine,
        link: &Rc<Link>,
        id: &str,
        here: &Path,
    ) -> Result<Self, SessionError> {
        let sessions = machine.sessions().unwrap_or_default();
        let power_dev = machine.programs.power_dev().unwrap_or_default();
        let directory = format!("{sessions}/{id}-director");
        let director = Self {
            link: Rc::clone(link),
            python: machine.python.clone(),
            server: format!("{}/ptd_client_server/server.py", power_dev),
            temporary: format!("{directory}/tmp"),
            directory,
            output: here.join("server-output.txt"),
            samples: SampleLog::default(),
            sampled: Instant::now(),
        };
        let made = link.files().make_directories(&director.temporary);
        made.map_err(|error| director.failed("making the session's directory", error))?;
        Ok(director)
    }

    fn failed(&self, doing: &'static str, error: std::io::Error) -> SessionError {
        SessionError::Machine {
            machine: self.link.login().to_owned(),
            doing,
            source: error.into(),
        }
    }

    /// Reads the new samples on the director. A missing file has none. The server's end reports a lost connection.
    fn read_samples(&mut self) -> std::io::Result<Vec<f64>> {
        let files = self.link.files();
        for directory in files.directories(&self.temporary)? {
            let path = directory.join(SAMPLES_NAME);
            if let Some(length) = files.length(&path)? {
                let bytes = files.read_from(&path, self.samples.offset(length))?;
                return Ok(self.samples.take(&bytes));
            }
        }
        Ok(Vec::new())
    }
}

impl Director for RemoteDirector {
    fn start_server(&mut self, conf: &str) -> Result<Box<dyn Program>, SessionError> {
        let file = format!("{}/server.conf", self.directory);
        let written = self.link.files().write(&file, conf.as_bytes());
        written.map_err(|error| self.failed("writing server.conf", error))?;
        SupervisedProgram::start(
            &self.link,
            "starting the official server",
            &self.python,
            self.link.program_path(&self.temporary),
            &[&self.server, "-c", self.link.program_path(&file)],
            &self.output,
        )
    }

    fn new_samples(&mut self) -> Vec<f64> {
        if self.sampled.elapsed() < INTERVAL || self.link.lost().is_some() {
            return Vec::new();
        }
        self.sampled = Instant::now();
        self.read_samples().unwrap_or_else(|error| {
            self.link.note(&error);
            Vec::new()
        })
    }
}

impl Drop for RemoteDirector {
    fn drop(&mut self) {
        if self.link.lost().is_none() {
            // What is left is named in the checks before the next session.
            let _ = self.link.files().remove(&self.directory);
        }
    }
}
