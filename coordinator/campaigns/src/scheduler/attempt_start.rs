//! Begins attempts: requests their runs, or starts their power sessions.

use std::time::Duration;

use regatta_config::catalogue::Catalogue;
use regatta_text::ErrorChain;
use regatta_types::{RunId, documents::EndCause};

use super::{Now, Scheduler};
use crate::{
    audit_draft::audit_draft,
    placement::NextAttempt,
    power_jobs::PowerJob,
    progress::Progress,
    retry::{self, Alternatives},
    run_limit::default_limit_s,
};
use regatta_lab_runs::{KnownRequest, RunFiles, least_seconds};
use regatta_lab_store::{
    AttemptEnd, AttemptRow, AttemptWork, CampaignRow, Combination, DeviceRow, NewAttempt, RunDraft,
    RunRequest,
};

impl Scheduler {
    /// Requests runs and starts power sessions. A request that has become impossible on a device is a failed attempt there. Returns
    /// whether runs were requested.
    pub(super) fn begin(
        &mut self,
        campaign: &CampaignRow,
        devices: &[DeviceRow],
        next: &[NextAttempt],
        now: Now,
    ) -> anyhow::Result<bool> {
        let Some(progress) = self.progress.get(&campaign.name) else {
            return Ok(false);
        };
        // A file that cannot be read is no failure of a cell.
        let catalogue = Catalogue::read(Some(&self.workspace.configs()))?;
        let files = RunFiles::read(&self.workspace, &self.store)?;
        let wall = now.wall.to_string();
        let mut has_begun = false;
        let mut sessions = Vec::new();
        for attempt in next {
            let Some(device) = devices.iter().find(|row| row.id == attempt.device) else {
                continue;
            };
            let Some(combination) = progress.combination_of(attempt.cell) else {
                continue;
            };
            let new = NewAttempt {
                campaign: &campaign.name,
                cell: attempt.cell,
                device: &attempt.device,
                now: &wall,
            };
            if let Some(meter) = &combination.meter {
                // The session's command reports what is wrong with a draft.
                let draft = draft(combination, device, &catalogue, &files).ok();
                let limit_s = draft.map_or(Ok(None), |draft| self.session_limit(&draft))?;
                sessions.push((new, meter.clone(), combination.request.clone(), limit_s));
                continue;
            }
            let drafted = match &combination.audit {
                None => draft(combination, device, &catalogue, &files),
                Some(test) => {
                    // Pending audits have both runs.
                    let Some(runs) = progress.audited_runs(attempt.cell) else {
                        continue;
                    };
                    audit_draft(test, runs, &catalogue, (&self.workspace, &self.store))?
                }
            };
            match drafted {
                Ok(mut draft) => {
                    if draft.limit_s.is_none() {
                        let past = self.store.recorded_runs_like(&draft)?;
                        draft.limit_s = Some(default_limit_s(&draft, &past));
                    }
                    has_begun |= self.store.begin_attempt(new, AttemptWork::Run(&draft))?;
                }
                Err(reason) => self.refuse(campaign, progress, new, &reason)?,
            }
        }
        for (new, meter, mut request, limit_s) in sessions {
            // A run that hangs would keep the meter.
            request.limit = request.limit.or(limit_s.map(Duration::from_secs));
            self.begin_session(new, &meter, request, now)?;
        }
        Ok(has_begun)
    }

    /// Returns the time limit of a session's runs, if the plan has none.
    fn session_limit(&self, draft: &RunDraft) -> anyhow::Result<Option<u64>> {
        if draft.limit_s.is_some() {
            return Ok(None);
        }
        let past = self.store.recorded_runs_like(draft)?;
        let least = least_seconds(&draft.spec).map_or(0, |seconds| seconds.saturating_add(1));
        Ok(Some(default_limit_s(draft, &past).max(least)))
    }

    /// Stores a failed attempt whose run cannot be requested on its device.
    fn refuse(
        &self,
        campaign: &CampaignRow,
        progress: &Progress,
        new: NewAttempt<'_>,
        reason: &str,
    ) -> anyhow::Result<()> {
        let cause = EndCause::Precondition;
        let earlier = self.store.counted_attempts(&campaign.name, new.cell)?;
        let earlier: Vec<&AttemptRow> = earlier.iter().collect();
        let alternatives = Alternatives {
            has_other_device: progress.has_other_device(new.cell, new.device, &earlier),
            ..Alternatives::default()
        };
        let end = AttemptEnd {
            cause: Some(cause),
            reason: Some(reason),
            is_tried_again: retry::is_tried_again(cause, &earlier, campaign, alternatives),
            run: None,
            now: new.now,
        };
        Ok(self.store.refuse_attempt(new, end)?)
    }

    /// Begins a power session. A second one of the same meter waits.
    fn begin_session(
        &mut self,
        new: NewAttempt<'_>,
        meter: &str,
        request: RunRequest,
        now: Now,
    ) -> anyhow::Result<()> {
        if self.power.uses_meter(meter) {
            return Ok(());
        }
        let job = PowerJob {
            session: RunId::now().to_string(),
            device: new.device.clone(),
            request,
        };
        if !self
            .store
            .begin_attempt(new, AttemptWork::Session(&job.session))?
        {
            return Ok(());
        }
        let Err(error) = self.power.begin(&job, meter, &self.workspace) else {
            return Ok(());
        };
        // The attempt ends with the reason, and other sessions still begin.
        let reason = format!("the power session cannot be started: {}", ErrorChain(&error));
        let open = self.store.open_attempts()?;
        match open.iter().find(|row| row.session.as_ref() == Some(&job.session)) {
            Some(attempt) => {
                let failed = Some((EndCause::Infrastructure, reason));
                self.end_attempt(attempt, (failed, None), None, now)
            }
            None => Ok(()),
        }
    }
}

/// Returns the draft of a combination's run on a device.
///
/// # Errors
/// Returns the reason why there is none, as text for the attempt.
fn draft(
    combination: &Combination,
    device: &DeviceRow,
    catalogue: &Catalogue,
    files: &RunFiles<'_>,
) -> Result<RunDraft, String> {
    KnownRequest::find(&combination.request, catalogue)
        .and_then(|known| known.draft_with_files(device, files))
        .map_err(|error| ErrorChain(&error).to_string())
}
