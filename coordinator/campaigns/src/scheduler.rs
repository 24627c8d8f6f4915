//! The scheduler: ends attempts whose runs are recorded, gives up lost devices, and begins attempts on idle ones.
//!
//! Everything is in the store before it is acted on. The scheduler keeps only how long devices have been absent, so it may be killed at any
//! point and continues after a restart. [`super::placement`] decides, this module reads and writes.

mod attempt_end;
mod attempt_start;
mod power_attempt;
mod unplaced_cells;

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::Context as _;
use regatta_types::DeviceId;

use super::{
    absences::Absences,
    clock_steps::{ClockSteps, DeadlineState, Now},
    eligibility::is_eligible,
    order,
    placement::{FleetView, next_attempts},
    progress::Progress,
    session_threads::SessionThreads,
};
use regatta_lab_store::{
    CampaignRow, CampaignState, DeviceRow, Store, change_notifier::ChangeNotifier, workspace::Workspace,
};

/// The interval for polling the store. Commands of other processes change it without a notification.
const PAUSE: Duration = Duration::from_millis(200);
/// The interval for a full check although nothing changed: deadlines and absences.
const RECHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The reason of runs and attempts that end because a user aborted the campaign.
const ABORTED: &str = "the campaign was aborted by the user";

/// Starts the scheduler. It ends when the notifier is closed.
///
/// # Errors
/// Returns an error when the store cannot be opened or the thread cannot start.
pub fn start(workspace: &Workspace, notifier: ChangeNotifier) -> anyhow::Result<JoinHandle<()>> {
    let scheduler = Scheduler::new(workspace.clone(), workspace.store()?);
    thread::Builder::new()
        .name("campaigns".to_owned())
        .spawn(move || scheduler.run(&notifier))
        .context("cannot start the scheduler's thread")
}

pub(super) struct Scheduler {
    workspace: Workspace,
    store: Store,
    absences: Absences,
    clock_steps: ClockSteps,
    /// The progress of campaigns, by name, as of their revision.
    progress: BTreeMap<String, Progress>,
    /// The threads of power sessions, which end with the scheduler.
    power: SessionThreads,
}

impl Scheduler {
    pub(super) const fn new(workspace: Workspace, store: Store) -> Self {
        Self {
            workspace,
            store,
            absences: Absences::new(),
            clock_steps: ClockSteps::new(),
            progress: BTreeMap::new(),
            power: SessionThreads::new(),
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
            let is_recent = looked.is_some_and(|looked: Instant| looked.elapsed() < RECHECK_INTERVAL);
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
        self.power.stop();
    }

    /// Performs the due steps. Returns whether it requested a run or the end of a run.
    pub(super) fn look(&mut self, now: Now) -> anyhow::Result<bool> {
        self.clock_steps.note(now);
        let campaigns = self.store.campaigns().all()?;
        let open = self.store.attempts().open()?;
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
        let devices = self.store.devices().all()?;
        // While the coordinator itself has no broker connection, no device counts as absent.
        if self.store.service().state()?.broker_lost.is_some() {
            self.absences.forget();
        } else {
            self.absences.note(&devices, now.instant);
        }
        let mut has_changed = false;
        for attempt in open.iter().filter(|attempt| !attempt.is_run_over) {
            has_changed |= self.end_if_due(attempt, &campaigns, &devices, now)?;
        }
        // Read again: a user may have changed it meanwhile, and attempts have ended.
        for campaign in self.store.campaigns().all()?.iter().filter(is_unfinished) {
            // An error of one campaign must not delay the others.
            match self.advance(campaign, &devices, now) {
                Ok(advanced) => has_changed |= advanced,
                Err(error) => tracing::error!(campaign = campaign.name, "{error:#}"),
            }
        }
        Ok(has_changed)
    }

    fn device_name(&self, device: &DeviceId) -> anyhow::Result<String> {
        let row = self.store.devices().get(device)?;
        Ok(row.map_or_else(|| device.to_string(), |row| row.name))
    }

    /// Begins attempts of a campaign, and ends it when nothing is left. Returns whether runs were requested.
    fn advance(&mut self, campaign: &CampaignRow, devices: &[DeviceRow], now: Now) -> anyhow::Result<bool> {
        if let Some(reason) = self.no_more_attempts(campaign, now) {
            self.store.cells().skip_waiting(&campaign.name, &reason)?;
        }
        self.store.cells().skip_audits_of_failed(&campaign.name)?;
        if self
            .store
            .campaigns()
            .end(&campaign.name, &now.wall.to_string())?
        {
            tracing::info!(campaign = campaign.name, "ended");
            return Ok(false);
        }
        let is_over = self.deadline_state(campaign, now) != DeadlineState::Ahead;
        if is_over
            || campaign.state != CampaignState::Running
            || self.store.service().state()?.broker_lost.is_some()
        {
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
        self.begin(campaign, devices, &next, now)
    }

    /// Returns the reason why no attempt begins any more.
    fn no_more_attempts(&self, campaign: &CampaignRow, now: Now) -> Option<String> {
        if campaign.state == CampaignState::Aborted {
            return Some(ABORTED.to_owned());
        }
        let has_passed = self.deadline_state(campaign, now) == DeadlineState::Passed;
        let deadline = campaign.deadline.as_ref().filter(|_| has_passed)?;
        Some(format!("the deadline {deadline} passed"))
    }

    fn deadline_state(&self, campaign: &CampaignRow, now: Now) -> DeadlineState {
        let deadline = campaign.deadline.as_ref().and_then(|at| at.parse().ok());
        deadline.map_or(DeadlineState::Ahead, |at| self.clock_steps.state_of(at, now))
    }

    fn fleet(&self, campaign: &CampaignRow, devices: &[DeviceRow]) -> anyhow::Result<FleetView> {
        let busy = self.store.attempts().busy_devices()?;
        let changed = self
            .store
            .campaigns()
            .devices_with_other_software(&campaign.name)?;
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

    /// Reads the changes of a campaign's progress.
    fn refresh(&mut self, campaign: &CampaignRow) -> anyhow::Result<()> {
        let progress = match self.progress.entry(campaign.name.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(Progress::new(&self.store, campaign)?),
        };
        progress.update(&self.store, campaign)?;
        Ok(())
    }
}
