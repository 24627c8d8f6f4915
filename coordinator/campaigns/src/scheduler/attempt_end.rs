//! Ends attempts: with the record of their run, or early when their campaign was aborted or their device is lost.

use regatta_types::{RunId, documents::EndCause};

use super::{ABORTED, Now, Scheduler};
use crate::{
    absences::why_not,
    eligibility::{is_eligible, is_present},
    retry::{self, Alternatives},
};
use regatta_lab_runs::{RateRetries, run_failure};
use regatta_lab_store::{AttemptEnd, AttemptRow, CampaignRow, CampaignState, DeviceRow, RunRow};

impl Scheduler {
    /// Ends an attempt whose run is recorded, or was removed.
    pub(super) fn settle(&mut self, attempt: &AttemptRow, now: Now) -> anyhow::Result<()> {
        let run = attempt.run.map_or(Ok(None), |run| self.store.runs().get(run))?;
        let failed = match &run {
            None => Some((EndCause::Operator, "its run was removed".to_owned())),
            Some(row) if row.is_good() => None,
            Some(row) => match (attempt.cause, &attempt.reason) {
                // The scheduler itself requested the end.
                (Some(cause), Some(reason)) => Some((cause, reason.clone())),
                _ => run_failure(row),
            },
        };
        self.end_attempt(attempt, failed, run.as_ref(), None, now)
    }

    /// Ends an attempt, good or failed. `testing` is the testing run of a power session.
    pub(super) fn end_attempt(
        &mut self,
        attempt: &AttemptRow,
        failed: Option<(EndCause, String)>,
        run: Option<&RunRow>,
        testing: Option<RunId>,
        now: Now,
    ) -> anyhow::Result<()> {
        let cause = failed.as_ref().map(|(cause, _)| *cause);
        let is_tried_again = match cause {
            None => false,
            Some(cause) => self.is_tried_again(attempt, cause, run)?,
        };
        let end = AttemptEnd {
            cause,
            reason: failed.as_ref().map(|(_, reason)| reason.as_str()),
            is_tried_again,
            run: testing,
            now: &now.wall.to_string(),
        };
        self.store.attempts().end(attempt, end)?;
        match &failed {
            None => tracing::info!(campaign = attempt.campaign, cell = attempt.cell, "good"),
            Some((cause, reason)) => tracing::warn!(
                campaign = attempt.campaign,
                cell = attempt.cell,
                again = is_tried_again,
                "{cause}: {reason}"
            ),
        }
        Ok(())
    }

    fn is_tried_again(
        &mut self,
        attempt: &AttemptRow,
        cause: EndCause,
        run: Option<&RunRow>,
    ) -> anyhow::Result<bool> {
        let Some(campaign) = self.store.campaigns().get(&attempt.campaign)? else {
            return Ok(false);
        };
        let earlier = self.store.attempts().counted(&attempt.campaign, attempt.cell)?;
        let earlier: Vec<&AttemptRow> = earlier.iter().filter(|row| row.number < attempt.number).collect();
        let has_other_device = cause == EndCause::Precondition && {
            self.refresh(&campaign)?;
            let progress = self.progress.get(&campaign.name);
            progress
                .is_some_and(|progress| progress.has_other_device(attempt.cell, &attempt.device, &earlier))
        };
        let alternatives = Alternatives {
            repeats_rate: cause == EndCause::Invalid
                && run.is_some_and(|row| self.repeats_rate(row, &earlier, &campaign)),
            has_other_device,
        };
        Ok(retry::is_tried_again(cause, &earlier, &campaign, alternatives))
    }

    /// Returns whether an INVALID run is repeated at the measured rate.
    fn repeats_rate(&self, run: &RunRow, earlier: &[&AttemptRow], campaign: &CampaignRow) -> bool {
        let retries = RateRetries {
            max: campaign.rate_retries,
        };
        let invalid = earlier
            .iter()
            .filter(|attempt| attempt.cause == Some(EndCause::Invalid));
        match retries.next(run, invalid.count() as u64, &self.workspace, &self.store) {
            Ok(draft) => draft.is_some(),
            Err(error) => {
                tracing::error!(run = %run.id, "its rate cannot be compared: {error:#}");
                false
            }
        }
    }

    /// Requests the end of an open attempt's run when its campaign was aborted, its device is lost, or its device takes no runs and has
    /// not got it. Returns whether it did.
    pub(super) fn end_if_due(
        &self,
        attempt: &AttemptRow,
        campaigns: &[CampaignRow],
        devices: &[DeviceRow],
        now: Now,
    ) -> anyhow::Result<bool> {
        let Some(campaign) = campaigns.iter().find(|row| row.name == attempt.campaign) else {
            return Ok(false);
        };
        let device = devices.iter().find(|row| row.id == attempt.device);
        if let Some(row) = device.filter(|row| is_present(row) && !is_eligible(row)) {
            let reason = format!("{} was {} before it had the run", row.name, why_not(Some(row)));
            if self
                .store
                .attempts()
                .withdraw_unsent_run(attempt, EndCause::Infrastructure, &reason)?
            {
                return Ok(true);
            }
        }
        if let Some(seconds) = self.absences.absent_for(&attempt.device, campaign, now.instant) {
            let device = self.device_name(&attempt.device)?;
            let reason = format!("{device} was absent for {seconds} s while it had the run");
            return Ok(self
                .store
                .attempts()
                .end_run(attempt, EndCause::Infrastructure, &reason, true)?);
        }
        if campaign.state == CampaignState::Aborted {
            return Ok(self
                .store
                .attempts()
                .end_run(attempt, EndCause::Operator, ABORTED, false)?);
        }
        Ok(false)
    }
}
