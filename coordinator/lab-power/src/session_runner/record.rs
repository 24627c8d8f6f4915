//! The steps after a session: judging it, and writing the record, whether it succeeded or failed.

use std::path::Path;

use regatta_power::session::SessionPlan;
use regatta_types::{
    RunId,
    documents::{EndCause, PowerSessionRecord, RecordedFailure, SessionRuns},
};

use super::{
    super::{
        rails_power::RailsPower,
        session_error::{PowerSessionError, recorded, recorded_failure},
        session_progress::{SessionNews, SessionProgress},
        session_record::{SessionFacts, write_session_record},
        session_verdict::{SessionVerdict, judge},
    },
    Measured, PowerSessionJob, PowerSessionRunner,
};
use regatta_lab_runs::marker_reasons;
use regatta_lab_store::{PowerSessionEnd, StoreError};

impl PowerSessionRunner<'_> {
    /// Judges a session, and records it with or without a verdict.
    pub(super) fn record(
        &self,
        job: &PowerSessionJob<'_>,
        plan: &SessionPlan,
        measured: Measured,
        progress: &mut dyn SessionProgress,
    ) -> Result<PowerSessionRecord, PowerSessionError> {
        let judged = match &measured.session {
            Ok(session) => self.judge(session),
            Err(error) => Err(recorded_failure(error)),
        };
        let runs = [measured.runs.ranging, measured.runs.testing];
        let obstacles = self
            .obstacles(runs.into_iter().flatten())
            // The session is complete, and its record is written in any case.
            .unwrap_or_else(|error| vec![format!("the markers of its runs cannot be read: {error}")]);
        let rails = self.rails(measured.runs).unwrap_or_else(|error| {
            progress.report(&SessionNews::RailsUnknown(&error));
            None
        });
        let facts = SessionFacts {
            id: job.session,
            meter: self.meter,
            machine: self.machines.system.name(),
            draft: job.draft,
            runs: measured.runs,
            repeated: measured.repeated,
            obstacles,
            observations: measured.observations,
            times: measured.times,
            rails,
            informative: self.is_informative(),
            unfetched: measured.unfetched,
        };
        let record = write_session_record(&plan.directory, facts, judged)?;
        let end = PowerSessionEnd {
            verdict: record.verdict,
            failure: record.failure.as_ref(),
            simulated: record.simulated,
            obstacles: &record.obstacles,
            mean_watts: record.energy.map(|energy| energy.watts),
        };
        self.store.power_sessions().end(job.session, &end)?;
        Ok(record)
    }

    fn judge(&self, session: &Path) -> Result<SessionVerdict, RecordedFailure> {
        let judged = match self.is_informative() {
            true => SessionVerdict::informative(self.rules, session),
            false => judge(&self.meter.settings, self.rules, session),
        };
        judged.map_err(|error| recorded(EndCause::Infrastructure, &error, None))
    }

    /// Returns the power of the board's rails in the testing run.
    fn rails(&self, runs: SessionRuns) -> Result<Option<RailsPower>, StoreError> {
        let row = runs
            .testing
            .map(|run| self.store.runs().get(run))
            .transpose()?
            .flatten();
        Ok(row.as_ref().and_then(RailsPower::of))
    }

    /// Returns why runs cannot be submitted, each reason once.
    fn obstacles(&self, runs: impl Iterator<Item = RunId>) -> Result<Vec<String>, StoreError> {
        let mut obstacles = Vec::new();
        for run in runs {
            let row = self.store.runs().get(run)?;
            for reason in row.as_ref().map(marker_reasons).unwrap_or_default() {
                let text = format!("{}: {}", reason.marker, reason.reason);
                if !obstacles.contains(&text) {
                    obstacles.push(text);
                }
            }
        }
        Ok(obstacles)
    }
}
