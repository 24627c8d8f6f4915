//! The life of a run (design, section 4) as a state machine that is kept on the device's disk and mirrored as a
//! retained message.

use serde::{Deserialize, Serialize};

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunPhase {
    /// Known to the device, waiting for its turn.
    Queued,
    /// Assets are checked, the engine and samples are loaded.
    Preparing,
    /// Everything is loaded; LoadGen has not begun.
    Ready,
    /// LoadGen runs.
    Running,
    /// LoadGen has ended; files are being sealed and delivered.
    Draining,
    /// Ended, and everything is at the coordinator.
    Done,
    /// Ended without a usable result; what was logged is kept and delivered.
    Failed,
    /// Ended because somebody asked for it.
    Aborted,
}

impl RunPhase {
    /// Whether the run has come to its end.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Aborted)
    }

    /// Whether the state machine allows the step. Staying is allowed: states are idempotent.
    #[must_use]
    pub fn may_become(self, next: Self) -> bool {
        use RunPhase::{Aborted, Done, Draining, Failed, Preparing, Queued, Ready, Running};
        self == next
            || matches!(
                (self, next),
                (Queued, Preparing)
                    | (Preparing, Ready)
                    | (Ready, Running)
                    | (Running, Draining)
                    | (Draining, Done)
                    | (Queued | Preparing | Ready | Running | Draining, Failed | Aborted)
            )
    }

    /// The word that users read.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Preparing => "preparing",
            Self::Ready => "ready",
            Self::Running => "running",
            Self::Draining => "draining",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Aborted => "aborted",
        }
    }
}

impl std::fmt::Display for RunPhase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// A run's state, with what is needed to understand it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunState {
    /// Where the run stands.
    pub phase: RunPhase,
    /// Why, when it failed or was aborted; what it waits for, while it is prepared: one sentence.
    pub reason: Option<String>,
    /// Counts the changes of this run's state, so that a late message cannot turn it back.
    pub revision: u64,
}
