//! What ends a session before it is complete, as it is seen from outside the official programs.

use std::time::Duration;

use regatta_text::ErrorChain;
use regatta_types::documents::EndCause;

use super::{program::ProgramEnd, workload::WorkloadError};

/// What ended a session early.
#[derive(Debug, thiserror::Error)]
pub enum SessionStop {
    /// The server ended before a client could connect.
    #[error("the server has ended before it was ready ({end}){}", LastLine(.last_line))]
    ServerNotReady {
        end: ProgramEnd,
        last_line: Option<String>,
    },
    /// The server started and then did nothing.
    #[error("the server has made no progress for {} s; PTDaemon is not responding", .0.as_secs())]
    ServerSilent(Duration),
    /// The server took too long to start.
    #[error("the server was not ready after {} s", .0.as_secs())]
    ServerSlow(Duration),
    /// The server ended while the client needed it.
    #[error("the server has ended in the middle of the session ({0})")]
    ServerEnded(ProgramEnd),
    #[error("the client has failed ({end}){}", LastLine(.last_line))]
    ClientFailed {
        end: ProgramEnd,
        last_line: Option<String>,
    },
    /// The client did nothing after the workload.
    #[error("no message from the client for {} s after the workload ended", .0.as_secs())]
    ClientSilent(Duration),
    /// The meter gave no sample while the workload ran.
    #[error("no sample from the meter for {} s", .0.as_secs())]
    NoSample(Duration),
    /// Neither program did anything between the workloads.
    #[error("client and server have made no progress for {} s; PTDaemon is not responding", .0.as_secs())]
    BothSilent(Duration),
    /// The connection to the director was lost.
    #[error("the connection to the director was lost: {0}")]
    DirectorLost(String),
    /// The connection to the system under test was lost. Its client may still complete the session.
    #[error("the connection to the system under test was lost: {0}")]
    SystemLost(String),
    /// The client ended and left an incomplete session.
    #[error("the client has ended without {0}")]
    Incomplete(&'static str),
    /// The workload failed, or something happened beside the session.
    #[error("{}", ErrorChain(.0))]
    Workload(WorkloadError),
}

impl SessionStop {
    /// Returns whose failure it is.
    #[must_use]
    pub const fn end_cause(&self) -> EndCause {
        match self {
            Self::Workload(error) => error.cause,
            _ => EndCause::Infrastructure,
        }
    }
}

/// A program's last line behind what was seen from outside: it usually has the reason.
struct LastLine<'a>(&'a Option<String>);

impl std::fmt::Display for LastLine<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(line) => write!(f, "; its last line: {line}"),
            None => Ok(()),
        }
    }
}
