//! Begins attempts: requests their runs, or starts their power sessions.

use regatta_catalogue::catalogue::Catalogue;
use regatta_text::ErrorChain;
use regatta_types::{RunId, documents::EndCause};

use super::{Now, Scheduler};
use crate::{
    audit_draft::{NoDraft, audit_draft},
    campaign_session::CampaignSession,
    placement::NextAttempt,
    progress::Progress,
    retry::{self, Alternatives},
    run_limit::default_limit_s,
};
use regatta_lab_runs::{KnownRequest, RunFiles, least_seconds};
use regatta_lab_store::{
    AttemptEnd, AttemptRow, AttemptWork, CampaignRow, Combination, DeviceRow, NewAttempt, RunDraft,
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
                match draft(combination, device, &catalogue, &files) {
                    Ok(mut draft) => {
                        draft.limit_s = Some(self.session_limit(&draft)?);
                        sessions.push((new, meter.clone(), draft));
                    }
                    Err(NoDraft(reason)) => self.refuse(campaign, progress, new, &reason)?,
                }
                continue;
            }
            let drafted = match &combination.audit {
                None => draft(combination, device, &catalogue, &files),
                Some(test) => {
                    // Pending audits have both runs.
                    let Some((performance, accuracy)) = progress.audited_runs(attempt.cell) else {
                        continue;
                    };
                    audit_draft(
                        test,
                        performance,
                        accuracy,
                        &catalogue,
                        &self.workspace,
                        &self.store,
                    )?
                }
            };
            match drafted {
                Ok(mut draft) => {
                    if draft.limit_s.is_none() {
                        let past = self.store.runs().recorded_like(&draft)?;
                        draft.limit_s = Some(default_limit_s(&draft, &past));
                    }
                    has_begun |= self.store.attempts().begin(new, AttemptWork::Run(&draft))?;
                }
                Err(NoDraft(reason)) => self.refuse(campaign, progress, new, &reason)?,
            }
        }
        for (new, meter, draft) in sessions {
            self.begin_session(new, meter, draft, now)?;
        }
        Ok(has_begun)
    }

    /// Returns the time limit of a session's runs: a run that hangs would keep the meter.
    fn session_limit(&self, draft: &RunDraft) -> anyhow::Result<u64> {
        if let Some(limit_s) = draft.limit_s {
            return Ok(limit_s);
        }
        let past = self.store.runs().recorded_like(draft)?;
        let least = least_seconds(&draft.spec).map_or(0, |seconds| seconds.saturating_add(1));
        Ok(default_limit_s(draft, &past).max(least))
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
        let earlier = self.store.attempts().counted(&campaign.name, new.cell)?;
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
        Ok(self.store.attempts().refuse(new, end)?)
    }

    /// Begins a power session. A second one of the same meter waits.
    fn begin_session(
        &mut self,
        new: NewAttempt<'_>,
        meter: String,
        draft: RunDraft,
        now: Now,
    ) -> anyhow::Result<()> {
        if !self.power.can_begin(&meter) {
            return Ok(());
        }
        let session = RunId::now().to_string();
        if !self.store.attempts().begin(new, AttemptWork::Session(&session))? {
            return Ok(());
        }
        let made = CampaignSession {
            workspace: self.workspace.clone(),
            session: session.clone(),
            meter: meter.clone(),
            draft,
        };
        let begun = self
            .power
            .begin(&session, &meter, move |cancel| made.make(cancel));
        let Err(error) = begun else {
            return Ok(());
        };
        // The attempt ends with the reason, and other sessions still begin.
        let reason = format!("the power session cannot be started: {}", ErrorChain(&error));
        let open = self.store.attempts().open()?;
        match open.iter().find(|row| row.session.as_ref() == Some(&session)) {
            Some(attempt) => {
                let failed = Some((EndCause::Infrastructure, reason));
                self.end_attempt(attempt, failed, None, None, now)
            }
            None => Ok(()),
        }
    }
}

/// Returns the draft of a combination's run on a device.
///
/// # Errors
/// Returns the reason why there is none.
fn draft(
    combination: &Combination,
    device: &DeviceRow,
    catalogue: &Catalogue,
    files: &RunFiles<'_>,
) -> Result<RunDraft, NoDraft> {
    KnownRequest::find(&combination.request, catalogue)
        .and_then(|known| known.draft_with_files(device, files))
        .map_err(|error| NoDraft(ErrorChain(&error).to_string()))
}
