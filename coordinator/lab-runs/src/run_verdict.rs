//! Verdicts and states by which lists of runs are filtered, on the command line and on the live page.

use clap::ValueEnum;
use regatta_types::documents::{AccuracyResult, RunPhase};

use regatta_lab_store::RunRow;

/// A verdict or state by which runs are selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RunVerdict {
    /// LoadGen's verdict is VALID
    Valid,
    /// LoadGen's verdict is INVALID
    Invalid,
    /// The audit passed, or the accuracy reached its target
    Pass,
    /// The audit failed, or the accuracy is below its target
    Fail,
    /// The run failed
    Failed,
    /// The run was aborted
    Aborted,
    /// The run is not over
    Open,
}

impl RunVerdict {
    /// Returns whether a run has this verdict or state.
    pub fn is_of(self, row: &RunRow) -> bool {
        let outcome = row.outcome.as_ref();
        let judged = |passed: bool| {
            let audit = outcome.and_then(|outcome| outcome.audit.as_ref());
            let accuracy = outcome.and_then(|outcome| outcome.accuracy.as_ref());
            audit.is_some_and(|audit| audit.passed == passed)
                || accuracy.is_some_and(|accuracy| AccuracyResult::is_reached(accuracy) == passed)
        };
        match self {
            Self::Valid => outcome.is_some_and(|outcome| outcome.judgement.valid == Some(true)),
            Self::Invalid => outcome.is_some_and(|outcome| outcome.judgement.valid == Some(false)),
            Self::Pass => judged(true),
            Self::Fail => judged(false),
            Self::Failed => row.is_over() && row.state.phase == RunPhase::Failed,
            Self::Aborted => row.is_over() && row.state.phase == RunPhase::Aborted,
            Self::Open => !row.is_over(),
        }
    }
}
