//! The system under test of a session on another machine: the official client there, the logs that it reads, and the files that it leaves.

use std::{
    cell::Cell,
    io,
    path::{Path, PathBuf},
    rc::Rc,
};

use regatta_power::session::{Program, SessionError, SystemUnderTest};

use super::{Machine, link::Link, remote_program::SupervisedProgram};

/// A system under test over SSH. Its session's directory there is removed when this is dropped.
pub(crate) struct RemoteSystem {
    link: Rc<Link>,
    python: String,
    client: String,
    directory: String,
    output: PathBuf,
    /// The free space that this machine's disk keeps.
    min_free_bytes: u64,
    /// Whether the client has left files that are not here yet.
    uncollected: Cell<bool>,
}

impl RemoteSystem {
    /// Makes the session's directory there. `here` is the one on this machine.
    ///
    /// # Errors
    /// [`SessionError`]
    pub(crate) fn new(
        machine: &Machine,
        link: &Rc<Link>,
        id: &str,
        here: &Path,
        min_free_bytes: u64,
    ) -> Result<Self, SessionError> {
        let sessions = machine.sessions().unwrap_or_default();
        let power_dev = machine.programs.power_dev().unwrap_or_default();
        let system = Self {
            link: Rc::clone(link),
            python: machine.python.clone(),
            client: format!("{}/ptd_client_server/client.py", power_dev),
            directory: format!("{sessions}/{id}-device"),
            output: here.join("client-output.txt"),
            min_free_bytes,
            uncollected: Cell::new(false),
        };
        let made = link.files().make_directories(&system.logs());
        made.map_err(|error| system.failed("making the session's directory", error))?;
        Ok(system)
    }

    fn failed(&self, doing: &'static str, error: io::Error) -> SessionError {
        SessionError::Machine {
            machine: self.link.login().to_owned(),
            doing,
            source: error.into(),
        }
    }
}

impl SystemUnderTest for RemoteSystem {
    fn logs(&self) -> String {
        format!("{}/loadgen", self.directory)
    }

    fn output(&self) -> String {
        format!("{}/session", self.directory)
    }

    fn start_client(&mut self, arguments: &[String]) -> Result<Box<dyn Program>, SessionError> {
        let mut words = vec![self.client.as_str()];
        words.extend(arguments.iter().map(String::as_str));
        SupervisedProgram::start(
            &self.link,
            "starting the official client",
            &self.python,
            "",
            &words,
            &self.output,
        )
    }

    fn collect(&mut self, directory: &Path) -> Result<(), SessionError> {
        self.uncollected.set(true);
        let fetched = self.link.fetch(&self.output(), directory, self.min_free_bytes);
        fetched.map_err(|error| SessionError::Uncollected {
            machine: self.link.login().to_owned(),
            directory: self.output(),
            source: error,
        })?;
        self.uncollected.set(false);
        Ok(())
    }
}

impl Drop for RemoteSystem {
    fn drop(&mut self) {
        if !self.uncollected.get() && self.link.lost().is_none() {
            // What is left is named in the checks before the next session.
            let _ = self.link.files().remove(&self.directory);
        }
    }
}
