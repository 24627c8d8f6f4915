//! A power server of Regatta's own, which official clients understand: for labs without the licence.
//!
//! It names itself in every session, so that no checker accepts its sessions. It sets no clock and keeps no session: the client fetches it.

mod acceptor;
mod analyzer;
mod command;
mod conversation;
mod error;
mod initial_ranges;
mod ptd_process;
mod ptd_reading;
mod ranges;
mod samples;
mod session;
mod temporary_directory;

use std::{fmt, path::Path, sync::atomic::AtomicBool, time::Duration};

use crate::{
    ntp,
    protocol::{
        own_program::OwnProgram,
        session_log::{LogSink, SessionLog},
    },
    server_conf::ServerConf,
};
use analyzer::Analyzer;
pub use error::ServerError;
use temporary_directory::TemporaryDirectory;

/// The program's name in its log.
const NAME: &str = "regatta-power-server";
/// The wait before and after each run, in which the meter settles.
const SETTLE: Duration = Duration::from_secs(10);
/// The same with the debug switch.
const DEBUG_SETTLE: Duration = Duration::from_millis(500);

/// A power server.
#[derive(Debug)]
pub struct PowerServer {
    conf: ServerConf,
    program: OwnProgram,
    log_sink: Sink,
    temporary: TemporaryDirectory,
    /// Whether waits are shortened, which the official checker refuses.
    debug: bool,
}

/// A [`LogSink`] that can be printed for debugging.
struct Sink(LogSink);

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sink")
    }
}

impl PowerServer {
    /// Prepares a server: compares the clock with NTP, and starts and ends every PTDaemon once. `debug` shortens the waits.
    ///
    /// # Errors
    /// [`ServerError`]
    pub fn prepare(
        conf: ServerConf,
        program: OwnProgram,
        debug: bool,
        log_sink: LogSink,
        interrupted: &AtomicBool,
    ) -> Result<Self, ServerError> {
        let server = Self {
            conf,
            program,
            log_sink: Sink(log_sink),
            temporary: TemporaryDirectory::new()?,
            debug,
        };
        let log = server.new_log();
        log.warn(&server.program.line());
        server.compare_clock(&log)?;
        let mut watch = || error::watch(interrupted);
        for mut analyzer in server.analyzers(server.temporary.path(), &log) {
            analyzer.start(&mut watch)?;
            analyzer.end();
        }
        Ok(server)
    }

    /// Serves one client after the other, until one has asked the server to end, or until `interrupted` is set.
    ///
    /// # Errors
    /// [`ServerError::Listen`]
    pub fn serve(&self, interrupted: &AtomicBool) -> Result<(), ServerError> {
        acceptor::serve(self, interrupted)
    }

    fn new_log(&self) -> SessionLog {
        SessionLog::new(NAME, &self.log_sink.0)
    }

    fn settle(&self) -> Duration {
        match self.debug {
            true => DEBUG_SETTLE,
            false => SETTLE,
        }
    }

    fn compare_clock(&self, log: &SessionLog) -> Result<(), ServerError> {
        let server = &self.conf.ntp_server;
        let offset = ntp::offset(server).map_err(|source| ServerError::Ntp {
            server: server.clone(),
            source,
        })?;
        log.info(&format!("NTP server {server}: offset {offset:+.3} s"));
        match offset.abs() < ntp::MAX_OFFSET.as_secs_f64() {
            true => Ok(()),
            false => Err(ServerError::Clock {
                server: server.clone(),
                offset,
            }),
        }
    }

    /// The meters, whose PTDaemons print into files of `directory`.
    fn analyzers(&self, directory: &Path, log: &SessionLog) -> Vec<Analyzer> {
        let analyzers = (1..).zip(&self.conf.analyzers);
        let analyzer = |(number, conf)| {
            let samples = self.temporary.path().join(format!("ptd_logfile_{number}.log"));
            let console = directory.join(format!("ptd_logs_analyzer_{number}.txt"));
            Analyzer::new(number, &self.conf.ptd, conf, &samples, &console, log)
        };
        analyzers.map(analyzer).collect()
    }
}
