//! Follows the attempts that are power sessions, and finds the sessions whose meter is free.

use std::collections::BTreeSet;

use regatta_types::documents::{EndCause, RecordedFailure};

use super::{ABORTED, Now, Scheduler};
use crate::{power_end::session_result, power_jobs::JobState, progress::Progress};
use regatta_lab_store::{AttemptRow, CampaignRow, CampaignState, LeaseState};

impl Scheduler {
    /// Ends the attempt of a power session whose command has ended. Requests its end when its campaign was aborted.
    pub(super) fn follow_session(
        &mut self,
        attempt: &AttemptRow,
        campaigns: &[CampaignRow],
        now: Now,
    ) -> anyhow::Result<()> {
        let Some(session) = &attempt.session else {
            return Ok(());
        };
        let campaign = campaigns.iter().find(|row| row.name == attempt.campaign);
        let is_aborted = campaign.is_some_and(|row| row.state == CampaignState::Aborted);
        if is_aborted {
            self.power.end(session);
        }
        match self.power.state(session)? {
            JobState::Running => return Ok(()),
            // A command that was killed leaves its session and its runs open.
            JobState::Ended | JobState::Unknown => {
                if self.is_session_ending(session)? {
                    return Ok(());
                }
            }
        }
        let requested = is_aborted.then(|| (EndCause::Operator, ABORTED.to_owned()));
        let log = self.workspace.power_log(session);
        let result = session_result(session, &log, requested, &self.store)?;
        self.end_attempt(attempt, (result.failure, None), result.run, now)
    }

    /// Returns whether a session whose command this process does not follow still has its meter. Such a command notices that the coordinator
    /// is gone. When the command was killed, too, the session has failed.
    fn is_session_ending(&self, session: &str) -> anyhow::Result<bool> {
        let Some(row) = self.store.power_session(session)? else {
            // It may still make its checks, with the lease of its meter.
            let leases = self.store.meters()?.into_iter().filter_map(|meter| meter.lease);
            let mut own = leases.filter(|lease| lease.session == session);
            return Ok(own.any(|lease| lease.state() != LeaseState::Stale));
        };
        if row.ended.is_some() {
            return Ok(false);
        }
        let lease = self.store.meter(&row.meter)?.and_then(|meter| meter.lease);
        if lease.is_some_and(|lease| lease.session == session && lease.state() != LeaseState::Stale) {
            return Ok(true);
        }
        let failure = RecordedFailure {
            cause: EndCause::Infrastructure,
            reason: "the session's command ended early".to_owned(),
        };
        self.store.fail_power_session(session, &failure)?;
        Ok(false)
    }

    /// Returns the combinations of power sessions whose meter has another session.
    pub(super) fn combinations_without_meter(&self, progress: &Progress) -> anyhow::Result<BTreeSet<u64>> {
        let mut waiting = BTreeSet::new();
        for combination in progress.combinations() {
            let Some(meter) = &combination.meter else { continue };
            let lease = self.store.meter(meter)?.and_then(|row| row.lease);
            let is_leased = lease.is_some_and(|lease| lease.state() != LeaseState::Stale);
            if is_leased || self.power.uses_meter(meter) {
                waiting.insert(combination.number);
            }
        }
        Ok(waiting)
    }
}
