//! The steps of a session and their progress texts.

use std::{fmt, time::Duration};

/// The official wait before and after each run.
const SETTLE: Duration = Duration::from_secs(10);

/// The two runs of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The run from which the meter's ranges follow.
    Ranging,
    /// The run that is measured.
    Testing,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ranging => "ranging",
            Self::Testing => "testing",
        })
    }
}

/// The steps of a session, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionPhase {
    /// The server compares its clock and tries PTDaemon.
    StartingServer,
    /// The client compares the clocks.
    Connecting,
    /// The meter settles before a run.
    Before(Part),
    /// The workload runs.
    Workload(Part),
    /// The meter settles after a run and is read.
    After(Part),
    /// The client collects the files.
    Collecting,
}

impl SessionPhase {
    /// The least time from the beginning of this step to the session's end, with runs of this length.
    #[must_use]
    pub fn time_left(self, run: Duration) -> Duration {
        let (waits, runs) = match self {
            Self::StartingServer | Self::Connecting | Self::Before(Part::Ranging) => (4, 2),
            Self::Workload(Part::Ranging) => (3, 2),
            Self::After(Part::Ranging) => (3, 1),
            Self::Before(Part::Testing) => (2, 1),
            Self::Workload(Part::Testing) => (1, 1),
            Self::After(Part::Testing) => (1, 0),
            Self::Collecting => (0, 0),
        };
        SETTLE * waits + run * runs
    }
}

impl fmt::Display for SessionPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StartingServer => f.write_str("starting the server and PTDaemon"),
            Self::Connecting => f.write_str("comparing clocks"),
            Self::Before(part) => write!(f, "{part}: the meter settles for 10 s"),
            Self::Workload(part) => write!(f, "{part}: the workload runs"),
            Self::After(part) => write!(f, "{part}: the meter settles for 10 s and is read"),
            Self::Collecting => f.write_str("collecting the session's files"),
        }
    }
}

/// What happens in a session.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SessionEvent {
    /// A step begins.
    Phase(SessionPhase),
    /// The meter has a sample, in watts.
    Watts(f64),
}
