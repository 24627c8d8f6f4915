//! A machine of a session that does not answer, or whose Python fails.

use std::{io, time::Duration};

use regatta_ssh::LinkLost;

/// An error of a program that looks at a machine.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// The connection was lost.
    #[error(transparent)]
    Link(#[from] LinkLost),
    /// Python cannot be started or followed.
    #[error("{python} does not run")]
    Python {
        /// The interpreter.
        python: String,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// The program failed.
    #[error("{python} fails: {last_line}")]
    Failed {
        /// The interpreter.
        python: String,
        /// The last line that it printed.
        last_line: String,
    },
    /// The program did not end in time.
    #[error("{python} has not ended within {} s", .waited.as_secs())]
    Endless {
        /// The Python interpreter.
        python: String,
        waited: Duration,
    },
    /// The program's report cannot be parsed.
    #[error("{python} reports no JSON")]
    NotJson {
        /// The interpreter.
        python: String,
        /// The position and the cause.
        #[source]
        source: serde_json::Error,
    },
    /// The machine does not tell its time.
    #[error("{machine} does not report its time")]
    NoTime {
        /// The machine's login.
        machine: String,
        /// The system's reason, if there is one.
        #[source]
        source: Option<io::Error>,
    },
}
