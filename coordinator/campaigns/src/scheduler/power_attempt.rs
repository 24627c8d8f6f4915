//! Follows the attempts that are power sessions, and finds the sessions whose meter is free.

use std::collections::BTreeSet;

use regatta_types::documents::EndCause;

use super::{ABORTED, Now, Scheduler};
use crate::{
    power_end::{coordinator_ended, session_result},
    progress::Progress,
    session_threads::{SessionState, ThreadEnd},
};
use regatta_lab_power::CancelReason;
use regatta_lab_store::{AttemptRow, CampaignRow, CampaignState, LeaseState};

impl Scheduler {
    /// Ends the attempt of a power session whose thread has ended. Requests its end when its campaign was aborted.
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
            self.power.cancel(session, CancelReason::CampaignAborted);
        }
        let end = match self.power.state(session) {
            SessionState::Running => return Ok(()),
            SessionState::Ended(end) => end,
            // A coordinator that was killed left its session and its runs open.
            SessionState::Unknown => Ok(()),
        };
        if self.is_session_open(session, &end)? {
            return Ok(());
        }
        let requested = is_aborted.then(|| (EndCause::Operator, ABORTED.to_owned()));
        let result = session_result(session, end, requested, &self.store)?;
        self.end_attempt(attempt, result.failure, None, result.run, now)?;
        self.power.forget(session);
        Ok(())
    }

    /// Returns whether a thread of another process may still run the session. If not, cleans up after the session: after a
    /// panic, a full disk or a killed coordinator its row is open, and its lease stale.
    fn is_session_open(&self, session: &str, end: &ThreadEnd) -> anyhow::Result<bool> {
        let row = self.store.power_sessions().get(session)?;
        let meters = self.store.meters().all()?.into_iter();
        let leased = meters.filter_map(|meter| Some((meter.name, meter.lease?)));
        let own = leased.into_iter().find(|(_, lease)| lease.session == session);
        let is_ended = row.as_ref().is_some_and(|row| row.ended.is_some());
        if !is_ended
            && own
                .as_ref()
                .is_some_and(|(_, lease)| lease.state() != LeaseState::Stale)
        {
            return Ok(true);
        }
        if row.is_some() && !is_ended {
            let failure = end.as_ref().err().cloned().unwrap_or_else(coordinator_ended);
            self.store.power_sessions().fail(session, &failure)?;
        }
        if let Some((meter, _)) = own.filter(|(_, lease)| lease.state() == LeaseState::Stale) {
            self.store.meters().release(&meter, session)?;
        }
        Ok(false)
    }

    /// Returns the combinations of power sessions that cannot begin now: their meter has another session.
    pub(super) fn combinations_without_meter(&self, progress: &Progress) -> anyhow::Result<BTreeSet<u64>> {
        let mut waiting = BTreeSet::new();
        for combination in progress.combinations() {
            let Some(meter) = &combination.meter else { continue };
            let lease = self.store.meters().get(meter)?.and_then(|row| row.lease);
            let is_leased = lease.is_some_and(|lease| lease.state() != LeaseState::Stale);
            if is_leased || !self.power.can_begin(meter) {
                waiting.insert(combination.number);
            }
        }
        Ok(waiting)
    }
}
