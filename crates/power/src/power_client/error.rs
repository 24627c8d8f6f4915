//! What fails in the client, with a hint for the user.

use std::{io, path::PathBuf, process::ExitStatus};

use crate::protocol::{connection::ConnectionError, file_error::FileError, file_transfer::TransferError};

/// A session that was not made.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Directories that contain each other.
    #[error("{} must not be {}, or below it: the first has LoadGen's logs, the second the session", output.display(), logs.display())]
    Nested {
        /// `-o`
        output: PathBuf,
        /// `-L`
        logs: PathBuf,
    },
    /// A directory that must not be removed.
    #[error("{} is not removed: this process works in it", .0.display())]
    NotRemoved(PathBuf),
    /// A session is there already.
    #[error("{} already exists, perhaps from an earlier session", .0.display())]
    Exists(PathBuf),
    /// No connection.
    #[error("cannot connect to the power server {address}")]
    Connect {
        /// Address and port.
        address: String,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// The connection ended.
    #[error("the power server is gone")]
    Server(#[from] ConnectionError),
    /// The peer is not a power server, or serves another client.
    #[error("the power server does not accept this client: `{0}`")]
    Handshake(String),
    /// The server refuses a command.
    #[error("the power server answers `{command}` with `{reply}`")]
    Refused {
        command: String,
        /// Its answer.
        reply: String,
    },
    /// A file was not fetched.
    #[error("{} was not fetched from the server", path.display())]
    Fetch {
        /// The file here.
        path: PathBuf,
        /// The reason.
        #[source]
        source: TransferError,
    },
    /// The NTP server does not answer.
    #[error("cannot get the time of the NTP server {server}")]
    Ntp {
        server: String,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// Two clocks differ.
    #[error(
        "this machine's clock and that of {other} differ by {milliseconds:.0} ms, and 400 ms are too many"
    )]
    Clock {
        /// Names the other clock.
        other: String,
        /// The difference, with the time that asking took.
        milliseconds: f64,
    },
    /// The workload cannot be started.
    #[error("cannot start `sh` for the workload")]
    Shell(#[source] io::Error),
    /// The workload failed.
    #[error("the workload has failed ({0})")]
    Workload(ExitStatus),
    /// The workload has left no logs.
    #[error("no mlperf_log_detail.txt below {} has power_begin and power_end within the workload's time", .0.display())]
    NoLogs(PathBuf),
    /// A file here.
    #[error(transparent)]
    File(#[from] FileError),
    /// The user ended it.
    #[error("the session was interrupted; the server stops the meter")]
    Interrupted,
}

impl ClientError {
    /// What helps.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Nested { .. } | Self::Exists(_) => "name another directory with -o",
            Self::NotRemoved(_) => "name the workload's directory with -L",
            Self::Connect { .. } => "start the server, and check -a, -p and the server's firewall",
            Self::Server(_) | Self::Refused { .. } => "the server's output has the reason",
            Self::Handshake(reply) if reply.contains("one client at a time") => "wait for the other session",
            Self::Handshake(_) => "check -a and -p: the server must speak version 3 of the protocol",
            Self::Ntp { .. } => "correct -n; the server must answer at UDP port 123",
            Self::Clock { .. } => "set both clocks from the same NTP server, for example with chrony",
            Self::NoLogs(_) => "the workload must write its logs below -L, with times in UTC",
            Self::Fetch { .. } | Self::Shell(_) | Self::Workload(_) | Self::File(_) | Self::Interrupted => {
                return None;
            }
        })
    }
}
