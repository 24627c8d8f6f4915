//! The state of one part of a result: its accuracy run, its performance run, or an audit.

use regatta_catalogue::round::Round;
use regatta_lab_runs::marker_reasons;
use regatta_lab_store::RunRow;
use regatta_text::escape;
use regatta_types::{RunId, documents::LoadgenChoice};
use serde::Serialize;

use crate::wording::{run_problems, run_text};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PartState {
    /// No run was requested.
    Missing,
    /// The newest run has not ended.
    Open,
    /// No run can be used.
    Failed,
    /// A run is good, but cannot be submitted.
    Rehearsal,
    /// A run can be submitted.
    Done,
}

/// The state of a part, and the run that determines it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PartStatus {
    pub state: PartState,
    pub run: Option<RunId>,
    /// The figure of a good run: its performance, or its accuracy with the target.
    pub figure: Option<String>,
    /// The phase of a run that has not ended, or the reason why a run cannot be used or submitted.
    pub detail: Option<String>,
}

impl PartStatus {
    pub(super) const fn missing() -> Self {
        Self {
            state: PartState::Missing,
            run: None,
            figure: None,
            detail: None,
        }
    }

    /// Determines the state of a part from its runs, newest first. A run that can be submitted is preferred, then one that has not ended, then a
    /// rehearsal, and a failed run only if there is no other.
    pub(super) fn of<'a>(runs: impl Iterator<Item = &'a RunRow>, round: &Round) -> Self {
        let mut best = Self::missing();
        for row in runs {
            let found = Self::of_run(row, round);
            if rank(found.state) > rank(best.state) {
                best = found;
            }
        }
        best
    }

    fn of_run(row: &RunRow, round: &Round) -> Self {
        let (state, detail) = if !row.is_over() {
            (PartState::Open, Some(row.shown_phase().to_string()))
        } else if !row.is_good() {
            (PartState::Failed, Some(failure(row)))
        } else if let Some(obstacle) = marker_reasons(row).into_iter().next() {
            (PartState::Rehearsal, Some(obstacle.reason))
        } else if let Some(reason) = other_loadgen(row, round) {
            (PartState::Rehearsal, Some(reason))
        } else {
            (PartState::Done, None)
        };
        let is_good = matches!(state, PartState::Done | PartState::Rehearsal);
        Self {
            state,
            run: Some(row.id),
            figure: figure(row).filter(|_| is_good),
            detail,
        }
    }

    /// Returns the run if it is good.
    pub(super) fn measured_run(&self) -> Option<RunId> {
        self.run
            .filter(|_| matches!(self.state, PartState::Done | PartState::Rehearsal))
    }
}

/// Returns the reason why the round does not accept the requested revision of LoadGen. A request without a revision is left to staging, which reads
/// the revision that ran.
fn other_loadgen(row: &RunRow, round: &Round) -> Option<String> {
    match &row.draft.spec.loadgen {
        LoadgenChoice::Official {
            revision: Some(revision),
        } if !round.accepts_loadgen(revision) => {
            Some(format!("round {} does not accept LoadGen {revision}", round.name))
        }
        LoadgenChoice::Official { .. } | LoadgenChoice::Native => None,
    }
}

const fn rank(state: PartState) -> u8 {
    match state {
        PartState::Missing => 0,
        PartState::Failed => 1,
        PartState::Rehearsal => 2,
        PartState::Open => 3,
        PartState::Done => 4,
    }
}

fn figure(row: &RunRow) -> Option<String> {
    run_text::figure(row).or_else(|| run_text::accuracy(row))
}

fn failure(row: &RunRow) -> String {
    if !run_text::has_result(row) {
        return run_text::result(row);
    }
    let problems = run_problems(row).join("; ");
    if problems.is_empty() {
        run_text::state(row).to_owned()
    } else {
        escape(&problems).into_owned()
    }
}
