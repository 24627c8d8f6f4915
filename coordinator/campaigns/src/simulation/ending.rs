//! The ends of simulated runs.

use regatta_types::documents::Judgement;
use regatta_types::documents::{EndCause, RunPhase, RunState, end_reason};

use super::dice::Dice;

use crate::retry::retryable_on_another_device;
use regatta_lab_store::{AttemptRow, RunOutcome};

/// Returns a simulated run's end by its cell and the number of the cell's earlier ends on devices: the same with and without kills.
pub(super) fn ending(cell: u64, earlier: u64) -> (RunState, RunOutcome) {
    let mut dice = Dice::new(cell * 1_000 + earlier);
    let good = RunOutcome {
        judgement: Judgement {
            valid: Some(true),
            ..Judgement::default()
        },
        complete: true,
        signed: Some(true),
        ..RunOutcome::default()
    };
    match dice.below(100) {
        0..8 => (failed(&format!("{}: soc 97 C", end_reason::STATE_LOST)), good),
        8..11 => (failed("the engine failed: out of tensors"), good),
        11..14 => {
            let invalid = RunOutcome {
                judgement: Judgement {
                    valid: Some(false),
                    reasons: vec!["the SUT completed a sample twice".to_owned()],
                    ..Judgement::default()
                },
                ..good
            };
            (done(), invalid)
        }
        _ => (done(), good),
    }
}

/// Returns a state of failure.
pub(super) fn failed(reason: &str) -> RunState {
    RunState {
        phase: RunPhase::Failed,
        reason: Some(reason.to_owned()),
        revision: 9,
    }
}

/// Returns the state of a run with a result.
fn done() -> RunState {
    RunState {
        phase: RunPhase::Done,
        reason: None,
        revision: 9,
    }
}

/// Returns the number of earlier attempts of the same cell that ended as [`ending`] decided, and not by a fault.
pub(super) fn earlier_ends(attempts: &[AttemptRow], attempt: &AttemptRow) -> u64 {
    let earlier = attempts
        .iter()
        .filter(|other| other.cell == attempt.cell && other.number < attempt.number);
    earlier
        .filter(|other| match other.cause {
            Some(EndCause::Device) => {
                let reason = other.reason.as_deref().unwrap_or_default();
                reason.starts_with(end_reason::STATE_LOST)
            }
            cause => !cause.is_some_and(retryable_on_another_device),
        })
        .count() as u64
}

/// Returns the state of a run that its device executes.
pub(super) fn running() -> RunState {
    RunState {
        phase: RunPhase::Running,
        reason: None,
        revision: 3,
    }
}
