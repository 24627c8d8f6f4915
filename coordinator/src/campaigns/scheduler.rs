//! The scheduler: ends attempts whose runs are recorded, gives up lost devices, and begins attempts on idle ones.
//!
//! Everything is in the store before it is acted on. The scheduler keeps only how long devices have been absent, so it may be killed at any
//! point and continues after a restart. [`super::placement`] decides, this module reads and writes.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::Context as _;
use jiff::Timestamp;
use regatta_config::catalogue::Catalogue;
use regatta_text::ErrorChain;
use regatta_types::{
    DeviceId, RunId,
    documents::{EndCause, SoftwareFacts},
};

use super::{
    absences::{Absences, cause_of_absence, why_not},
    audit_draft::audit_draft,
    cause,
    eligibility::{is_eligible, is_present},
    order,
    placement::{FleetView, NextAttempt, next_attempts},
    power_end::power_end,
    power_jobs::{JobState, PowerJob, PowerJobs},
    progress::Progress,
    retry::{self, Alternatives},
    run_limit::default_limit_s,
    software,
};
use crate::{
    change_notifier::ChangeNotifier,
    runs::{ParsedWords, ResolveError, RunFiles, Words, least_seconds, repetitions},
    store::{
        AttemptEnd, AttemptRow, AttemptWork, CampaignRow, CampaignState, CellFailure, Combination, DeviceRow,
        LeaseState, NewAttempt, RunDraft, RunRow, Store,
    },
    workspace::Workspace,
};

/// The interval for polling the store. Commands of other processes change it without a notification.
const PAUSE: Duration = Duration::from_millis(200);
/// The interval for a full check although nothing changed: deadlines and absences.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The reason of what ends because a user aborted its campaign.
const ABORTED: &str = "the campaign was aborted by the user";
/// The number of devices that the reason of a cell without one names.
const NAMED_DEVICES: usize = 4;

/// Starts the scheduler. It ends when the notifier is closed.
///
/// # Errors
/// Returns an error when the store cannot be opened or the thread cannot start.
pub(crate) fn start(workspace: &Workspace, notifier: ChangeNotifier) -> anyhow::Result<JoinHandle<()>> {
    let scheduler = Scheduler::new(workspace.clone(), Store::open(&workspace.database())?);
    thread::Builder::new()
        .name("campaigns".to_owned())
        .spawn(move || scheduler.run(&notifier))
        .context("cannot start the scheduler's thread")
}

/// The current time by both clocks. Absences are measured by the monotonic one; deadlines are wall times.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    /// The monotonic clock.
    pub(super) instant: Instant,
    /// The wall clock.
    pub(super) wall: Timestamp,
}

impl Now {
    fn read() -> Self {
        Self {
            instant: Instant::now(),
            wall: Timestamp::now(),
        }
    }
}

pub(super) struct Scheduler {
    workspace: Workspace,
    store: Store,
    absences: Absences,
    /// The progress of campaigns, by name, as of their revision.
    progress: BTreeMap<String, Progress>,
    /// The commands of power sessions. Without them, after a restart, sessions end by themselves.
    power: PowerJobs,
}

impl Scheduler {
    pub(super) const fn new(workspace: Workspace, store: Store) -> Self {
        Self {
            workspace,
            store,
            absences: Absences::new(),
            progress: BTreeMap::new(),
            power: PowerJobs::new(),
        }
    }

    #[cfg(test)]
    pub(super) const fn store(&self) -> &Store {
        &self.store
    }

    #[cfg(test)]
    pub(super) fn into_store(self) -> Store {
        self.store
    }

    fn run(mut self, notifier: &ChangeNotifier) {
        let mut heard = notifier.changes();
        let mut version = None;
        let mut looked = None;
        while let Some(count) = notifier.wait(heard, PAUSE) {
            let now_version = self.store.data_version().ok();
            let is_recent = looked.is_some_and(|looked: Instant| looked.elapsed() < LOOK_AGAIN);
            if count == heard && now_version == version && is_recent {
                continue;
            }
            (heard, version, looked) = (count, now_version, Some(Instant::now()));
            match self.look(Now::read()) {
                // The dispatcher sends what was requested.
                Ok(true) => notifier.notify(),
                Ok(false) => {}
                Err(error) => tracing::error!("campaigns: {error:#}"),
            }
        }
    }

    /// Performs the due steps. Returns whether it requested a run or the end of a run.
    pub(super) fn look(&mut self, now: Now) -> anyhow::Result<bool> {
        let campaigns = self.store.campaigns()?;
        let open = self.store.open_attempts()?;
        let is_unfinished = |campaign: &&CampaignRow| campaign.ended.is_none();
        let unfinished: BTreeSet<&str> = campaigns
            .iter()
            .filter(is_unfinished)
            .map(|row| row.name.as_str())
            .collect();
        self.progress.retain(|name, _| unfinished.contains(name.as_str()));
        self.absences.follow(&unfinished, now.instant);
        if open.is_empty() && unfinished.is_empty() {
            self.absences.forget();
            return Ok(false);
        }
        for attempt in open.iter().filter(|attempt| attempt.is_run_over) {
            if let Err(error) = self.settle(attempt, now) {
                tracing::error!(campaign = attempt.campaign, cell = attempt.cell, "{error:#}");
            }
        }
        for attempt in open.iter().filter(|attempt| attempt.session.is_some()) {
            if let Err(error) = self.follow_session(attempt, &campaigns, now) {
                tracing::error!(campaign = attempt.campaign, cell = attempt.cell, "{error:#}");
            }
        }
        let devices = self.store.devices()?;
        // While the coordinator itself has no broker connection, no device counts as absent.
        if self.store.service()?.broker_lost.is_some() {
            self.absences.forget();
        } else {
            self.absences.note(&devices, now.instant);
        }
        let mut has_changed = false;
        for attempt in open.iter().filter(|attempt| !attempt.is_run_over) {
            has_changed |= self.end_if_due(attempt, &campaigns, &devices, now)?;
        }
        // Read again: a user may have changed it meanwhile, and attempts have ended.
        for campaign in self.store.campaigns()?.iter().filter(is_unfinished) {
            // An error of one campaign must not delay the others.
            match self.advance(campaign, &devices, now) {
                Ok(advanced) => has_changed |= advanced,
                Err(error) => tracing::error!(campaign = campaign.name, "{error:#}"),
            }
        }
        Ok(has_changed)
    }

    /// Ends an attempt whose run is recorded, or was removed.
    fn settle(&mut self, attempt: &AttemptRow, now: Now) -> anyhow::Result<()> {
        let run = attempt.run.map_or(Ok(None), |run| self.store.run(run))?;
        let failed = match &run {
            None => Some((EndCause::Operator, "its run was removed".to_owned())),
            Some(row) if row.is_good() => None,
            Some(row) => match (attempt.cause, &attempt.reason) {
                // The scheduler itself requested the end.
                (Some(cause), Some(reason)) => Some((cause, reason.clone())),
                _ => cause::failure(row),
            },
        };
        self.end_attempt(attempt, (failed, run.as_ref()), None, now)
    }

    /// Ends an attempt, good or failed. `testing` is the testing run of a power session.
    fn end_attempt(
        &mut self,
        attempt: &AttemptRow,
        (failed, run): (Option<(EndCause, String)>, Option<&RunRow>),
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
        self.store.end_attempt(attempt, end)?;
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

    /// Ends the attempt of a power session whose command is over, or lets it end when its campaign was aborted.
    fn follow_session(
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
        let end = power_end(session, &log, requested, &self.store)?;
        self.end_attempt(attempt, (end.failure, None), end.run, now)
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
        self.store
            .fail_power_session(session, "the session's command ended in the middle")?;
        Ok(false)
    }

    fn is_tried_again(
        &mut self,
        attempt: &AttemptRow,
        cause: EndCause,
        run: Option<&RunRow>,
    ) -> anyhow::Result<bool> {
        let Some(campaign) = self.store.campaign(&attempt.campaign)? else {
            return Ok(false);
        };
        let earlier = self.store.counted_attempts(&attempt.campaign, attempt.cell)?;
        let earlier: Vec<&AttemptRow> = earlier.iter().filter(|row| row.number < attempt.number).collect();
        let has_other_device = cause == EndCause::Precondition && {
            self.refresh(&campaign)?;
            let progress = self.progress.get(&campaign.name);
            progress
                .is_some_and(|progress| progress.has_other_device(attempt.cell, &attempt.device, &earlier))
        };
        let alternatives = Alternatives {
            has_other_rate: cause == EndCause::Invalid && run.is_some_and(|row| self.has_other_rate(row)),
            has_other_device,
        };
        Ok(retry::is_tried_again(cause, &earlier, &campaign, alternatives))
    }

    /// Returns whether a measured rate can make an INVALID run VALID.
    fn has_other_rate(&self, run: &RunRow) -> bool {
        match repetitions(std::slice::from_ref(run), &self.workspace, &self.store) {
            Ok(drafts) => !drafts.is_empty(),
            Err(error) => {
                tracing::error!(run = %run.id, "its rate cannot be compared: {error:#}");
                false
            }
        }
    }

    /// Requests the end of an open attempt's run when its campaign was aborted, its device is lost, or its device takes no runs and has
    /// not got it. Returns whether it did.
    fn end_if_due(
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
            let cause = (EndCause::Infrastructure, reason.as_str());
            if self.store.withdraw_unsent_run(attempt, cause)? {
                return Ok(true);
            }
        }
        if let Some(seconds) = self.absences.absent_for(&attempt.device, campaign, now.instant) {
            let device = self.device_name(&attempt.device)?;
            let reason = format!("{device} was absent for {seconds} s while it had the run");
            let cause = (EndCause::Infrastructure, reason.as_str());
            return Ok(self.store.end_attempts_run(attempt, cause, true)?);
        }
        if campaign.state == CampaignState::Aborted {
            let cause = (EndCause::Operator, ABORTED);
            return Ok(self.store.end_attempts_run(attempt, cause, false)?);
        }
        Ok(false)
    }

    fn device_name(&self, device: &DeviceId) -> anyhow::Result<String> {
        let row = self.store.device(device)?;
        Ok(row.map_or_else(|| device.to_string(), |row| row.name))
    }

    /// Begins attempts of a campaign, and ends it when nothing is left. Returns whether runs were requested.
    fn advance(&mut self, campaign: &CampaignRow, devices: &[DeviceRow], now: Now) -> anyhow::Result<bool> {
        let wall = now.wall.to_string();
        if let Some(reason) = self.no_more_attempts(campaign, now) {
            self.store.skip_waiting_cells(&campaign.name, &reason)?;
        }
        self.store.skip_audits_of_failed_cells(&campaign.name)?;
        if self.store.end_campaign(&campaign.name, &wall)? {
            tracing::info!(campaign = campaign.name, "ended");
            return Ok(false);
        }
        if campaign.state != CampaignState::Running || self.store.service()?.broker_lost.is_some() {
            return Ok(false);
        }
        let fleet = self.fleet(campaign, devices)?;
        self.refresh(campaign)?;
        let Some(progress) = self.progress.get(&campaign.name) else {
            return Ok(false);
        };
        if fleet.idle.is_empty() && progress.open_attempts() > 0 {
            return Ok(false);
        }
        let waiting = self.combinations_without_meter(progress)?;
        let pending = progress
            .pending()
            .filter(|cell| !waiting.contains(&cell.combination));
        let next = next_attempts(pending, &fleet, progress.history());
        if next.is_empty() {
            if progress.open_attempts() == 0 && progress.pending().next().is_some() {
                self.fail_cells_without_device(campaign, devices, &fleet, now)?;
            }
            return Ok(false);
        }
        self.begin(campaign, devices, &next, &wall)
    }

    /// Returns the combinations of power sessions whose meter has another session.
    fn combinations_without_meter(&self, progress: &Progress) -> anyhow::Result<BTreeSet<u64>> {
        let mut waiting = BTreeSet::new();
        for combination in progress.combinations() {
            let Some(meter) = &combination.meter else { continue };
            let lease = self.store.meter(meter)?.and_then(|row| row.lease);
            let is_leased = lease.is_some_and(|lease| lease.state() != LeaseState::Stale);
            if is_leased || self.power.use_meter(meter) {
                waiting.insert(combination.number);
            }
        }
        Ok(waiting)
    }

    /// Returns why no attempt begins any more.
    fn no_more_attempts(&self, campaign: &CampaignRow, now: Now) -> Option<String> {
        if campaign.state == CampaignState::Aborted {
            return Some(ABORTED.to_owned());
        }
        let deadline = campaign.deadline.as_ref()?;
        let at: Timestamp = deadline.parse().ok()?;
        (at <= now.wall).then(|| format!("the deadline {deadline} passed"))
    }

    fn fleet(&self, campaign: &CampaignRow, devices: &[DeviceRow]) -> anyhow::Result<FleetView> {
        let busy = self.store.busy_devices()?;
        let changed = self.store.devices_with_other_software(&campaign.name)?;
        let present: BTreeSet<DeviceId> = devices
            .iter()
            .filter(|device| is_eligible(device) && !changed.contains_key(&device.id))
            .map(|device| device.id.clone())
            .collect();
        let mut idle: Vec<DeviceId> = present
            .iter()
            .filter(|device| !busy.contains(device))
            .cloned()
            .collect();
        idle.sort_by_key(|device| order::device_rank(campaign.seed, device));
        Ok(FleetView { idle, present })
    }

    /// Reads what has changed of a campaign's progress.
    fn refresh(&mut self, campaign: &CampaignRow) -> anyhow::Result<()> {
        let progress = match self.progress.entry(campaign.name.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(Progress::new(&self.store, campaign)?),
        };
        progress.update(&self.store, campaign)?;
        Ok(())
    }

    /// Requests runs. A request that has become impossible on a device is a failed attempt there.
    fn begin(
        &mut self,
        campaign: &CampaignRow,
        devices: &[DeviceRow],
        next: &[NextAttempt],
        now: &str,
    ) -> anyhow::Result<bool> {
        let Some(progress) = self.progress.get(&campaign.name) else {
            return Ok(false);
        };
        // A file that cannot be read is no failure of a cell.
        let catalogue = Catalogue::read(Some(&self.workspace.configs()))?;
        let files = RunFiles::read(&self.workspace, &self.store)?;
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
                now,
            };
            if let Some(meter) = &combination.meter {
                // A run that hangs would keep the meter.
                let limit_s = match draft(combination, device, &catalogue, &files) {
                    Ok(draft) if draft.limit_s.is_none() => {
                        let past = self.store.recorded_runs_like(&draft)?;
                        let least = least_seconds(&draft.spec).map_or(0, |seconds| seconds.saturating_add(1));
                        Some(default_limit_s(&draft, &past).max(least))
                    }
                    // The session's command reports what is wrong.
                    Ok(_) | Err(_) => None,
                };
                sessions.push((new, meter.clone(), combination.words.clone(), limit_s));
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
                Err(reason) => {
                    let cause = EndCause::Precondition;
                    let earlier = self.store.counted_attempts(&campaign.name, attempt.cell)?;
                    let earlier: Vec<&AttemptRow> = earlier.iter().collect();
                    let alternatives = Alternatives {
                        has_other_device: progress.has_other_device(attempt.cell, &attempt.device, &earlier),
                        ..Alternatives::default()
                    };
                    let end = AttemptEnd {
                        cause: Some(cause),
                        reason: Some(&reason),
                        is_tried_again: retry::is_tried_again(cause, &earlier, campaign, alternatives),
                        run: None,
                        now,
                    };
                    self.store.refuse_attempt(new, end)?;
                }
            }
        }
        for (new, meter, words, limit_s) in sessions {
            self.begin_session(new, &meter, &words, limit_s)?;
        }
        Ok(has_begun)
    }

    /// Begins a power session, whose runs end at `limit_s` at the latest. A second one of the same meter waits.
    fn begin_session(
        &mut self,
        new: NewAttempt<'_>,
        meter: &str,
        words: &str,
        limit_s: Option<u64>,
    ) -> anyhow::Result<()> {
        if self.power.use_meter(meter) {
            return Ok(());
        }
        let mut words: Words = serde_json::from_str(words)?;
        words.device = Some(new.device.to_string());
        words.limit = words
            .limit
            .or_else(|| limit_s.map(|seconds| format!("{seconds}s")));
        let job = PowerJob {
            session: RunId::now().to_string(),
            words,
        };
        if self
            .store
            .begin_attempt(new, AttemptWork::Session(&job.session))?
        {
            self.power
                .begin(&job, meter, &self.workspace)
                .context("a power session cannot be started")?;
        }
        Ok(())
    }

    /// Fails waiting cells whose devices have all been lost. Nothing else of the campaign can run then.
    fn fail_cells_without_device(
        &self,
        campaign: &CampaignRow,
        devices: &[DeviceRow],
        fleet: &FleetView,
        now: Now,
    ) -> anyhow::Result<()> {
        let Some(progress) = self.progress.get(&campaign.name) else {
            return Ok(());
        };
        let history = progress.history();
        let changed = self.store.devices_with_other_software(&campaign.name)?;
        let mut failures = Vec::new();
        for cell in progress.pending() {
            if cell.has_device(fleet, history) {
                continue;
            }
            let needed: Vec<&DeviceId> = match history.bound.get(&cell.combination) {
                Some(bound) => vec![bound],
                None => cell.candidates.iter().collect(),
            };
            let is_lost = |device: &&DeviceId| {
                let is_removed = !devices.iter().any(|row| row.id == **device);
                is_removed
                    || changed.contains_key(*device)
                    || self
                        .absences
                        .ineligible_for(device, campaign, now.instant)
                        .is_some()
            };
            if needed.iter().all(is_lost) {
                let row = |id: &DeviceId| devices.iter().find(|row| row.id == *id);
                let rows: Vec<Option<&DeviceRow>> = needed.iter().map(|id| row(id)).collect();
                let mut states = Vec::new();
                // Those whose software decides come first: an operator can return them to it.
                let mut named: Vec<_> = needed.iter().zip(&rows).collect();
                named.sort_by_key(|(id, _)| !changed.contains_key(**id));
                for (id, row) in named.into_iter().take(NAMED_DEVICES) {
                    let state = match changed.get(*id) {
                        Some(then) => format!(
                            ": {}",
                            software::change(then.as_ref(), software_of(*row).as_ref())
                        ),
                        None => format!(" is {}", why_not(*row)),
                    };
                    states.push(format!("{}{state}", self.device_name(id)?));
                }
                if needed.len() > NAMED_DEVICES {
                    states.push(format!("and {} more", needed.len() - NAMED_DEVICES));
                }
                let states = states.join(", ");
                let (cause, reason) = if needed.iter().any(|device| changed.contains_key(*device)) {
                    (
                        EndCause::Precondition,
                        format!("no device may take it: {states}; {}", software::HINT),
                    )
                } else {
                    let reason = format!("no device has taken it for {} s: {states}", campaign.lose_after_s);
                    (cause_of_absence(&rows), reason)
                };
                failures.push(CellFailure {
                    cell: cell.number,
                    cause,
                    reason,
                });
            }
        }
        self.store.fail_cells(&campaign.name, &failures)?;
        Ok(())
    }
}

/// Returns the software that a device stated last.
fn software_of(device: Option<&DeviceRow>) -> Option<SoftwareFacts> {
    device?.reported_facts().ok()?.software
}

/// Returns the draft of a combination's run on a device.
///
/// # Errors
/// Returns why there is none, as text for the attempt.
fn draft(
    combination: &Combination,
    device: &DeviceRow,
    catalogue: &Catalogue,
    files: &RunFiles<'_>,
) -> Result<RunDraft, String> {
    let text = |error: &ResolveError| ErrorChain(error).to_string();
    let words: Words = serde_json::from_str(&combination.words).map_err(|error| error.to_string())?;
    let parsed = ParsedWords::parse(&words, catalogue).map_err(|error| text(&error))?;
    let mut drafts = parsed.drafts(device).map_err(|error| text(&error))?;
    let mut draft = drafts.pop().ok_or("the request has no run")?;
    files
        .add_to(&mut draft, &words.asset)
        .map_err(|error| text(&error))?;
    Ok(draft)
}
