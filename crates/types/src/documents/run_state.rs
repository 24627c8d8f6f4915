//! State machine of a run. The device keeps it on disk and publishes it as a retained message.

use serde::{Deserialize, Serialize};

/// Phase of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunPhase {
    /// The device knows the run; it waits for its turn.
    Queued,
    /// The agent checks assets and loads the engine and the samples.
    Preparing,
    /// Everything is loaded; LoadGen has not started.
    Ready,
    /// LoadGen runs.
    Running,
    /// LoadGen has ended; the agent seals and delivers the files.
    Draining,
    /// The run has ended and the coordinator has all files.
    Done,
    /// The run ended without a usable result. Its logs are kept and delivered.
    Failed,
    /// The run was aborted on request.
    Aborted,
}

impl RunPhase {
    /// Whether the phase is the last of a run.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Aborted)
    }

    /// Whether the state machine allows the transition. A transition to the same phase is allowed, because states are idempotent.
    #[must_use]
    pub fn may_become(self, next: Self) -> bool {
        use RunPhase::{Aborted, Done, Draining, Failed, Preparing, Queued, Ready, Running};
        self == next
            || matches!(
                (self, next),
                (Queued, Preparing)
                    | (Preparing, Ready)
                    // An engine build ends before LoadGen would start.
                    | (Ready, Running | Draining)
                    | (Running, Draining)
                    | (Draining, Done)
                    | (Queued | Preparing | Ready | Running | Draining, Failed | Aborted)
            )
    }

    /// Returns the name of the phase in messages and documents.
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

/// State of a run, with its reason and revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunState {
    /// The current phase.
    pub phase: RunPhase,
    /// Why the run failed or was aborted, or what it waits for while it is prepared: one sentence.
    pub reason: Option<String>,
    /// Counts the changes of this run's state. A late message can therefore not revert it.
    pub revision: u64,
}
