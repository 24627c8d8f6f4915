//! A machine of a session, this one or another one over SSH, and the official programs on it.

mod error;
mod link;
mod local_program;
mod login_shell;
mod meter_reading;
mod probe;
mod programs;
mod remote_director;
mod remote_program;
mod remote_system;
mod watch;

use std::rc::Rc;

use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;

pub use error::MachineError;
pub use link::{Link, LinkError};
pub(crate) use meter_reading::{IdleLoad, MeterReading};
pub(crate) use probe::{NtpAnswer, Probe, ProbeRequest};
pub use programs::Programs;
pub(crate) use remote_director::RemoteDirector;
pub(crate) use remote_system::RemoteSystem;
pub(crate) use watch::{WatchReport, WatchRequest};

/// The directory of the sessions below a login's own.
const SESSIONS: &str = "regatta-power";

/// The machine of an official program, and the link that starts it.
#[derive(Clone)]
pub struct Machine {
    /// The connection. `None` for this machine.
    pub link: Option<Rc<Link>>,
    /// The Python interpreter.
    pub python: String,
    /// The power programs.
    pub programs: Programs,
}

impl Machine {
    /// Returns the machine in words.
    pub fn name(&self) -> String {
        self.link
            .as_ref()
            .map_or_else(|| "this machine".to_owned(), |link| link.login().to_owned())
    }

    /// Returns whether its connection no longer answers.
    pub fn is_lost(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.lost().is_some())
    }

    /// Returns whether both are this machine.
    pub fn is_same_as(&self, other: &Self) -> bool {
        self.link.is_none() && other.link.is_none()
    }

    /// Returns the directory of the sessions on another machine, for its SFTP.
    pub fn sessions(&self) -> Option<String> {
        self.link
            .as_ref()
            .map(|link| format!("{}/{SESSIONS}", link.home()))
    }

    /// Probes the machine.
    ///
    /// # Errors
    /// Returns an error when Python does not run there.
    pub fn probe(&self, request: &ProbeRequest<'_>) -> Result<Probe, MachineError> {
        self.report(probe::PROBE, request)
    }

    /// Reads a meter through PTDaemon: its executable, its arguments with `LOG` for the log file, and its port.
    ///
    /// # Errors
    /// Returns an error when Python does not run there.
    pub fn read_meter(
        &self,
        ptd: &str,
        arguments: &[String],
        port: u16,
    ) -> Result<MeterReading, MachineError> {
        let request = json!({ "ptd": ptd, "arguments": arguments, "port": port });
        self.report(meter_reading::READ_METER, &request)
    }

    /// Runs a Python program with a request as a line of JSON, and reads its report as JSON.
    fn report<T: DeserializeOwned>(
        &self,
        program: &str,
        request: &impl Serialize,
    ) -> Result<T, MachineError> {
        let python = &self.python;
        let not_json = |source| MachineError::NotJson {
            python: python.clone(),
            source,
        };
        let request = serde_json::to_string(request).map_err(not_json)?;
        let output = match &self.link {
            Some(link) => link.run("probing the machine", python, program, &request)?,
            None => local_program::run(python, program, &request, link::RUN_PATIENCE)?,
        };
        serde_json::from_str(output.trim()).map_err(not_json)
    }
}
