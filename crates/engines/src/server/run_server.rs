//! The model server of a run: one that the run has started and stops, or one that ran before. Waits until it is ready, and opens connections.

use std::{
    collections::BTreeMap,
    error::Error,
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use super::{
    driver::{CommandValues, Readiness, ServerDriver},
    found_server::FoundServer,
    http::{Connection, HttpError},
    process::ServerProcess,
    process_facts::ProcessId,
    server_error::{LastLines, ServerError},
};

/// The pause between two looks at a server that starts.
const PAUSE: Duration = Duration::from_millis(20);
/// How much later than its connections a process may end.
const END_DELAY: Duration = Duration::from_secs(1);
/// How long a server may be silent while it answers. LoadGen has its own, shorter limit for a run without responses.
const PATIENCE: Duration = Duration::from_secs(3600);
/// How long one look may take.
const LOOK_LIMIT: Duration = Duration::from_secs(5);
/// The most that a server has for its answer to a single request, such as the probe. A driver with less time until it is ready has that.
const MAX_ANSWER_TIME: Duration = Duration::from_secs(600);

/// A ready model server.
#[derive(Debug)]
pub(super) struct RunServer {
    address: SocketAddr,
    /// How long the server may be silent while it answers a single request.
    answer_limit: Duration,
    origin: Origin,
}

#[derive(Debug)]
enum Origin {
    Started(ServerProcess),
    Found(FoundServer),
}

impl RunServer {
    /// Starts a server and waits until it is ready. What it prints goes to `log`.
    pub(super) fn start(
        driver: &ServerDriver,
        values: CommandValues<'_>,
        log: &Path,
    ) -> Result<Self, ServerError> {
        let process = ServerProcess::start(driver, values, log)?;
        let mut server = Self::new(driver, process.address, Origin::Started(process));
        let ready = server.wait_until_ready(&driver.ready);
        let Origin::Started(process) = &mut server.origin else {
            return Ok(server);
        };
        let known = process.read_pid();
        ready.and(known).map(|()| server)
    }

    /// Waits until the server at an address is ready, and finds its process.
    ///
    /// # Errors
    /// [`ServerError::NothingListens`] at once if the port is closed.
    pub(super) fn find(driver: &ServerDriver, address: SocketAddr) -> Result<Self, ServerError> {
        let mut server = Self::new(driver, address, Origin::Found(FoundServer::at(address)));
        server.wait_until_ready(&driver.ready)?;
        // It may have been started meanwhile.
        server.origin = Origin::Found(FoundServer::at(address));
        Ok(server)
    }

    fn new(driver: &ServerDriver, address: SocketAddr, origin: Origin) -> Self {
        Self {
            address,
            answer_limit: Duration::from_secs(driver.ready.within_s).min(MAX_ANSWER_TIME),
            origin,
        }
    }

    fn wait_until_ready(&self, ready: &Readiness) -> Result<(), ServerError> {
        let limit = Duration::from_secs(ready.within_s);
        let begun = Instant::now();
        let mut answer = None;
        while begun.elapsed() < limit {
            if let Origin::Started(process) = &self.origin {
                process.check_runs()?;
            }
            // Until it listens and has loaded its model, a server refuses connections or answers with another status.
            match (
                Connection::new(self.address, LOOK_LIMIT).get(&ready.path),
                &self.origin,
            ) {
                // Another process may have taken the port: the server ends then.
                (Ok(_), Origin::Started(process)) => return process.check_runs(),
                (Ok(_), Origin::Found(_)) => return Ok(()),
                (Err(HttpError::Connect(error)), Origin::Found(_))
                    if error.kind() == io::ErrorKind::ConnectionRefused =>
                {
                    return Err(ServerError::NothingListens(self.address));
                }
                (Err(error), _) => {
                    answer = Some(error);
                    thread::sleep(PAUSE);
                }
            }
        }
        let lines = self.last_lines();
        Err(ServerError::NotReady { limit, answer, lines })
    }

    /// Returns an error if the server has ended, or if one that the run has not started was started again.
    pub(super) fn check_runs(&self) -> Result<(), ServerError> {
        match &self.origin {
            Origin::Started(process) => process.check_runs(),
            Origin::Found(server) => server.check_runs(),
        }
    }

    /// As [`check_runs`](Self::check_runs), after a connection broke: a process may end a moment after its connections.
    pub(super) fn check_runs_on(&self) -> Result<(), ServerError> {
        let begun = Instant::now();
        while begun.elapsed() < END_DELAY {
            self.check_runs()?;
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Returns a connection for single requests.
    pub(super) const fn connection(&self) -> Connection {
        Connection::new(self.address, self.answer_limit)
    }

    /// Returns a connection for a request that need not be answered.
    pub(super) const fn brief_connection(&self) -> Connection {
        Connection::new(self.address, LOOK_LIMIT)
    }

    /// Returns a connection for a stream of requests.
    pub(super) const fn patient_connection(&self) -> Connection {
        Connection::new(self.address, PATIENCE)
    }

    /// Returns the error of a server whose answer cannot be used. Why the server ended explains more than a broken connection.
    pub(super) fn explain(&self, error: impl Into<Box<dyn Error + Send + Sync>>) -> ServerError {
        match self.check_runs_on() {
            Ok(()) => ServerError::Unusable(error.into(), self.last_lines()),
            Err(ended) => ended,
        }
    }

    /// Returns the last lines that the server printed.
    pub(super) fn last_lines(&self) -> LastLines {
        match &self.origin {
            Origin::Started(process) => process.last_lines(),
            Origin::Found(_) => LastLines::NotKnown,
        }
    }

    /// Returns the address of a server that the run has not started.
    pub(super) const fn found_at(&self) -> Option<SocketAddr> {
        match &self.origin {
            Origin::Started(_) => None,
            Origin::Found(server) => Some(server.address),
        }
    }

    /// Returns program, arguments and variables with which the run has started the server.
    pub(super) fn started_with(&self) -> Option<(&[String], &BTreeMap<String, String>)> {
        match &self.origin {
            Origin::Started(process) => Some((&process.command, &process.environment)),
            Origin::Found(_) => None,
        }
    }

    /// Returns the server's process, or why it is not known.
    pub(super) fn process(&self) -> Result<ProcessId, String> {
        match &self.origin {
            Origin::Started(process) => {
                ProcessId::running(process.pid).ok_or_else(|| "it has ended".to_owned())
            }
            Origin::Found(server) => server.process.clone(),
        }
    }

    /// Returns the directory in which the paths begin that the server states.
    pub(super) fn working_directory(&self) -> Option<PathBuf> {
        match &self.origin {
            Origin::Started(_) => None,
            Origin::Found(server) => server.working_directory(),
        }
    }
}
