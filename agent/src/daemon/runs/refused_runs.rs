//! Runs that the device has refused. They are only kept in memory and, as retained states, at the broker.

use std::collections::VecDeque;

use regatta_types::{
    RunId,
    documents::{RunPhase, RunState},
};
use regatta_wire::message::StateReport;

/// Number of refused runs that are remembered. The limit bounds memory against a malicious coordinator.
const MAX_REFUSED: usize = 256;

/// The refused runs, newest last.
#[derive(Debug, Default)]
pub(super) struct RefusedRuns(VecDeque<(RunId, RunState)>);

impl RefusedRuns {
    /// Adds a run with the phase and reason of its state. Drops the oldest one above the limit.
    pub(super) fn add(&mut self, run: RunId, phase: RunPhase, reason: String) {
        tracing::warn!("run {run}: not accepted: {reason}");
        if self.0.len() >= MAX_REFUSED {
            self.0.pop_front();
        }
        let state = RunState {
            phase,
            reason: Some(reason),
            revision: 1,
        };
        self.0.push_back((run, state));
    }

    pub(super) fn remove(&mut self, run: RunId) {
        self.0.retain(|(refused, _)| *refused != run);
    }

    /// Returns whether the run is among them.
    pub(super) fn contains(&self, run: RunId) -> bool {
        self.ids().any(|refused| refused == run)
    }

    /// Returns the ids, oldest first.
    pub(super) fn ids(&self) -> impl Iterator<Item = RunId> {
        self.0.iter().map(|(run, _)| *run)
    }

    /// Returns the state report of a refused run.
    pub(super) fn report(&self, run: RunId) -> Option<StateReport> {
        let (run, state) = self.0.iter().find(|(refused, _)| *refused == run)?;
        Some(StateReport {
            run: *run,
            state: state.clone(),
            streams: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_refused_runs_are_remembered() {
        let mut refused = RefusedRuns::default();
        let runs: Vec<RunId> = (0..=MAX_REFUSED).map(|_| RunId::now()).collect();
        for run in &runs {
            refused.add(*run, RunPhase::Failed, "no space".to_owned());
        }
        assert!(refused.ids().eq(runs[1..].iter().copied()));
        assert!(!refused.contains(runs[0]) && refused.report(runs[0]).is_none());
        assert_eq!(refused.report(runs[1]).unwrap().state.phase, RunPhase::Failed);
    }
}
