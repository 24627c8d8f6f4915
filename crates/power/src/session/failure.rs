//! Why a session failed, in one sentence with a remedy. The official programs' own last words are often about something else.

use std::{
    collections::VecDeque,
    error::Error,
    io,
    path::{Path, PathBuf},
};

use regatta_types::documents::EndCause;

use super::{phase::SessionPhase, stop::SessionStop, workload::WorkloadError};
use crate::server_conf::ConfError;

/// A session that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// It began and failed.
    #[error(transparent)]
    Failed(#[from] SessionFailure),
    /// Its configuration cannot be written.
    #[error("cannot create the session's server.conf")]
    Conf(#[from] ConfError),
    /// A machine of the session failed in something.
    #[error("{doing} on {machine}")]
    Machine {
        /// The machine, in words.
        machine: String,
        /// What was done, such as `starting the official server`.
        doing: &'static str,
        /// The cause.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The session's files on the system under test could not be fetched.
    #[error("the session's files could not be fetched and stay on {machine} in {directory}")]
    Uncollected {
        /// The machine, in words.
        machine: String,
        /// The directory there.
        directory: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The system refused a file or a program.
    #[error("cannot use {}", path.display())]
    Io {
        /// The file or the program.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
}

impl SessionError {
    /// Adds the file or program to an error of the system.
    pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }

    /// Returns whose failure it is.
    #[must_use]
    pub const fn end_cause(&self) -> EndCause {
        match self {
            Self::Failed(failure) => failure.end_cause(),
            // The meter's settings have a fault.
            Self::Conf(_) => EndCause::Precondition,
            Self::Machine { .. } | Self::Uncollected { .. } | Self::Io { .. } => EndCause::Infrastructure,
        }
    }
}

/// How a session failed.
#[derive(Debug, thiserror::Error)]
#[error("the session has failed while {phase}: {}", self.sentence())]
pub struct SessionFailure {
    /// The step.
    pub phase: SessionPhase,
    /// What ended it.
    pub stop: SessionStop,
    /// What the programs' own words mean, where they say it better.
    meaning: Option<&'static str>,
    /// What helps.
    pub hint: &'static str,
}

/// What helps when nothing better is known.
const OUTPUT: &str = "see server-output.txt and client-output.txt in the session's directory";

/// Texts in a program's output, with their meaning and a hint. The first match counts.
type Reasons = &'static [(&'static str, &'static str, &'static str)];

/// The supervisor's words about a program that a signal stopped.
const STOPPED: (&str, &str, &str) = (
    "supervisor: the program is stopped by a signal",
    "a signal has stopped the program",
    "do not stop the official programs with SIGSTOP or a debugger; repeat the session",
);

const SERVER: Reasons = &[
    STOPPED,
    (
        "already occupied",
        "PTDaemon's port is in use",
        "end the other PTDaemon, or give the meter another --ptd-port",
    ),
    (
        "Address already in use",
        "the server's port is in use",
        "end the other power server, or give the meter another --port",
    ),
    (
        "Could not synchronize with NTP",
        "the director has no NTP time within 400 ms",
        "check the meter's --ntp server, and set the director's clock",
    ),
    (
        "could not connect to PTDaemon",
        "PTDaemon did not listen within 30 s",
        "switch the meter on, and check its cable, device type, interface and device port",
    ),
    (
        "did not listen on port",
        "PTDaemon did not listen within 30 s",
        "switch the meter on, and check its cable, device type, interface and device port",
    ),
    (
        "; its last output:",
        "PTDaemon has ended",
        "check the meter's cable and power, and repeat the session",
    ),
    (
        "answers `SR,",
        "the meter refused a range of the testing run",
        "the meter has no range for what ranging saw; check its shunt and wiring",
    ),
    (
        "answers that it is not PTDaemon",
        "another program answers on PTDaemon's port",
        "give the meter another --ptd-port",
    ),
    (
        "PermissionError",
        "a program or device must not be used by this user",
        "make PTDaemon executable, and let the user write to the meter's device file",
    ),
    (
        "FileNotFoundError",
        "PTDaemon's program does not exist",
        "correct the path with `regatta meter add --replace`",
    ),
    (
        "PTDaemon unexpectedly terminated",
        "PTDaemon has ended",
        "check the meter's cable and power, and repeat the session",
    ),
    (
        "received no reply from PTDaemon",
        "PTDaemon has ended",
        "check the meter's cable and power, and repeat the session",
    ),
    (
        "Error setting",
        "the meter refused a range of the testing run",
        "the meter has no range for what ranging saw; check its shunt and wiring",
    ),
];

const CLIENT: Reasons = &[
    STOPPED,
    (
        "to be a directory containing loadgen logs",
        "no LoadGen log has power_begin and power_end within the workload's time",
        "the workload must write its logs in UTC; check the device's clock",
    ),
    (
        "Could not synchronize",
        "the clocks of director and SUT differ by 400 ms or more, or NTP does not answer",
        "set both clocks from the same NTP server",
    ),
    (
        "and 400 ms are too many",
        "the clocks of director and SUT differ by 400 ms or more",
        "set both clocks from the same NTP server",
    ),
    (
        "no mlperf_log_detail.txt below",
        "no LoadGen log has power_begin and power_end within the workload's time",
        "the workload must write its logs in UTC; check the device's clock",
    ),
    (
        "the workload has failed",
        "the workload has failed",
        "see client-output.txt in the session's directory",
    ),
    (
        "returned non-zero exit status",
        "the workload has failed",
        "see client-output.txt in the session's directory",
    ),
    (
        "Error: exception",
        "the official server refused a step",
        "server-output.txt in the session's directory has the reason",
    ),
];

impl SessionFailure {
    /// Creates the failure of a complete session beside which something happened that makes its measurement worthless.
    #[must_use]
    pub const fn beside(error: WorkloadError) -> Self {
        Self {
            phase: SessionPhase::Collecting,
            stop: SessionStop::Workload(error),
            meaning: None,
            hint: "repeat the session while nothing else uses the device",
        }
    }

    /// Finds the reason in the output of both programs; `stop` is what Regatta observed.
    pub(super) fn explain(
        phase: SessionPhase,
        stop: SessionStop,
        server: &VecDeque<String>,
        client: &VecDeque<String>,
    ) -> Self {
        let reason = |lines: &VecDeque<String>, reasons: Reasons| {
            let printed = |words: &str| lines.iter().any(|line| line.contains(words));
            reasons.iter().find(|(words, ..)| printed(words))
        };
        let found = reason(server, SERVER).or_else(|| reason(client, CLIENT));
        Self {
            phase,
            stop,
            meaning: found.map(|(_, meaning, _)| *meaning),
            hint: found.map_or(OUTPUT, |(.., hint)| *hint),
        }
    }

    /// Returns whose failure it is.
    #[must_use]
    pub const fn end_cause(&self) -> EndCause {
        self.stop.end_cause()
    }

    /// Returns whether the connection to the system under test was lost. Its client may have completed the session.
    #[must_use]
    pub const fn is_system_lost(&self) -> bool {
        matches!(self.stop, SessionStop::SystemLost(_))
    }

    fn sentence(&self) -> String {
        match self.meaning {
            Some(meaning) => format!("{meaning} ({})", self.stop),
            None => self.stop.to_string(),
        }
    }
}
