//! What fails in the server, with a hint for the user.

use std::{
    io,
    sync::atomic::{AtomicBool, Ordering},
};

use crate::protocol::{connection::ConnectionError, file_error::FileError, file_transfer::TransferError};

/// A server that does not start, or a session that fails.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The NTP server does not answer.
    #[error("cannot get the time of the NTP server {server}")]
    Ntp {
        /// The server in server.conf.
        server: String,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// This machine's clock is off.
    #[error("this machine's clock is {offset:.3} s behind the NTP server {server}, and 400 ms are too many")]
    Clock {
        /// The server in server.conf.
        server: String,
        /// Its clock less this one.
        offset: f64,
    },
    /// The address cannot be used.
    #[error("cannot listen at {address}")]
    Listen {
        /// The address in server.conf.
        address: String,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// Another program has PTDaemon's port.
    #[error("port {port} of PTDaemon {number} is in use")]
    PtdPort {
        /// The analyzer, counted from 1.
        number: usize,
        /// The port in server.conf.
        port: u16,
    },
    /// PTDaemon's program cannot be started.
    #[error("cannot start PTDaemon {program}")]
    PtdStart {
        /// The program in server.conf.
        program: String,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// PTDaemon starts and does not listen.
    #[error("PTDaemon {number} did not listen on port {port} within 30 s")]
    PtdSilent {
        /// The analyzer.
        number: usize,
        /// The port in server.conf.
        port: u16,
    },
    /// PTDaemon has ended.
    #[error("PTDaemon {number} has ended ({end}); its last output: {words}")]
    PtdEnded {
        /// The analyzer.
        number: usize,
        end: String,
        /// The last line that it printed.
        words: String,
    },
    /// PTDaemon does not answer.
    #[error("PTDaemon {number} has not answered `{command}`")]
    PtdReply {
        /// The analyzer.
        number: usize,
        /// What was asked.
        command: String,
        /// The reason.
        #[source]
        source: ConnectionError,
    },
    /// PTDaemon answers something else than expected.
    #[error("PTDaemon {number} answers `{command}` with `{reply}`")]
    PtdRefusal {
        /// The analyzer.
        number: usize,
        /// What was asked.
        command: String,
        /// What it answered.
        reply: String,
    },
    /// The ranging run has no ranges.
    #[error("PTDaemon {number} has no sample of the ranging run with volts and amperes{channel}")]
    NoSample {
        /// The analyzer.
        number: usize,
        /// Names the channel.
        channel: String,
    },
    /// A file here.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file that a client fetches.
    #[error("cannot send a file")]
    Transfer(#[from] TransferError),
    /// The client is gone.
    #[error("the client is gone")]
    Client(#[from] ConnectionError),
    /// The user ends the server.
    #[error("the server was interrupted")]
    Interrupted,
}

impl ServerError {
    /// What helps.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Ntp { .. } => "correct ntpServer in server.conf; the server must answer at UDP port 123",
            Self::Clock { .. } => "set the clock from the same NTP server, for example with chrony",
            Self::Listen { .. } => "end the other power server, or change `listen` in server.conf",
            Self::PtdPort { .. } => "end the other PTDaemon, or change networkPort in server.conf",
            Self::PtdStart { .. } => "correct `ptd` in server.conf, and make the program executable",
            Self::PtdSilent { .. } | Self::PtdEnded { .. } | Self::PtdReply { .. } => {
                "switch the meter on, and check its cable, deviceType, interfaceFlag and devicePort"
            }
            Self::NoSample { .. } => "the workload must run for some seconds; check `channel` in server.conf",
            _ => return None,
        })
    }

    /// Whether no client waits for a reply any more.
    pub(super) fn ends_conversation(&self) -> bool {
        matches!(self, Self::Client(_) | Self::Interrupted)
    }
}

/// Fails once the user has interrupted the server.
pub(super) fn watch(interrupted: &AtomicBool) -> Result<(), ServerError> {
    match interrupted.load(Ordering::Relaxed) {
        true => Err(ServerError::Interrupted),
        false => Ok(()),
    }
}
