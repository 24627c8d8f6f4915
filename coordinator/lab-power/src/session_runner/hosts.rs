//! Director and system under test of a session, with the session's directories on them, and the logs that the client gets.

use std::{
    io,
    path::{Path, PathBuf},
    rc::Rc,
};

use regatta_power::session::{Director, LocalDirector, LocalSystem, Part, SessionError, SystemUnderTest};

use super::{
    super::{
        machine::{Machine, RemoteDirector, RemoteSystem},
        run_workload::{HandOver, copy_logs, upload_logs},
        session_machines::SessionMachines,
    },
    PowerSessionRunner,
};

/// The machines as the programs of a session use them.
pub(super) struct Hosts {
    pub(super) director: Box<dyn Director>,
    pub(super) system: Box<dyn SystemUnderTest>,
}

impl PowerSessionRunner<'_> {
    /// Makes the session's directories on director and system under test.
    pub(super) fn hosts(&self, session: &str, directory: &Path) -> Result<Hosts, SessionError> {
        let SessionMachines { director, system, .. } = &self.machines;
        let unknown = |source: io::Error| SessionError::Io {
            path: "/proc/self/exe".into(),
            source,
        };
        Ok(Hosts {
            director: match &director.link {
                Some(link) => Box::new(RemoteDirector::new(director, link, session, directory)?),
                None => {
                    let server = director.programs.server(&director.python).map_err(unknown)?;
                    Box::new(LocalDirector::new(&python(director), &server, directory)?)
                }
            },
            system: match &system.link {
                Some(link) => {
                    let min_free_bytes = self.workspace.min_free_bytes();
                    Box::new(RemoteSystem::new(
                        system,
                        link,
                        session,
                        directory,
                        min_free_bytes,
                    )?)
                }
                None => {
                    let client = system.programs.client(&system.python).map_err(unknown)?;
                    let logs = directory.join("loadgen");
                    Box::new(LocalSystem::new(&python(system), &client, directory, &logs)?)
                }
            },
        })
    }

    /// Passes the logs of a run to the client, on this machine or over SSH.
    pub(super) fn hand_over(&self, logs: String) -> HandOver<'static> {
        let link = self.machines.system.link.as_ref().map(Rc::clone);
        Box::new(move |part: Part, from: &Path| match &link {
            None => copy_logs(from, &Path::new(&logs).join(part.to_string())),
            Some(link) => {
                upload_logs(link, from, &format!("{logs}/{part}")).inspect_err(|error| link.note(error))
            }
        })
    }
}

fn python(machine: &Machine) -> PathBuf {
    PathBuf::from(&machine.python)
}
