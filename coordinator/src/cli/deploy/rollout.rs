//! An upgrade of several devices, wave by wave: it begins attempts, looks at the devices of a wave before the next one begins, and stops after
//! failures. Each attempt is in the store before it begins, so that a command which was killed can be continued.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use regatta_types::{DeviceId, documents::EndCause};
use serde::{Deserialize, Serialize};

use super::{
    BoardError, BoardResult, BoardWork, Results, Task, all, maintenance_hold, sentence,
    waves::{Failures, Portion},
};
use crate::{
    cli::{
        Context,
        context::tell,
        device_check::{self, KnownRuns},
        interrupts::Interrupts,
        wait::Wait,
    },
    exit::Failure,
};
use regatta_deploy::{DeployError, DeployOutcome};
use regatta_lab_runs::CheckVerdict;
use regatta_lab_store::{DeviceActivity, DeviceRow, RolloutEnd, Store, workspace::Workspace};

/// The interval for looking at interrupts during a pause.
const LOOK: Duration = Duration::from_millis(100);

/// The ends of an upgrade, as the store and `--show` have them.
pub(super) mod outcome {
    /// Every device has the new agent.
    pub(in super::super) const COMPLETE: &str = "complete";
    /// Every device was tried, and some do not have it.
    pub(super) const INCOMPLETE: &str = "incomplete";
    /// Failures stopped it.
    pub(super) const STOPPED: &str = "stopped";
    /// A user stopped it.
    pub(super) const INTERRUPTED: &str = "interrupted";
}

/// The options of an upgrade that a command which continues it repeats.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RolloutOptions {
    /// The number of devices that are done after each wave.
    pub(super) waves: Vec<Portion>,
    /// The failures after which no further device is begun.
    pub(super) stop_after: Portion,
    /// The time for which the devices of a wave are watched before the next one, in milliseconds.
    pub(super) pause_ms: u64,
    /// Whether known runs check each device.
    pub(super) check: bool,
    /// Whether devices that have a run are upgraded.
    pub(super) force: bool,
}

/// A device that is to be upgraded.
pub(super) struct Job<'a> {
    /// The work.
    pub(super) task: &'a Task,
    pub(super) device: &'a DeviceId,
    /// Its wave, from 1.
    pub(super) wave: u64,
}

/// An upgrade that is under way.
pub(super) struct Rollout<'a> {
    /// Its number in the store. `None` in a dry run, which is not recorded.
    pub(super) number: Option<u64>,
    pub(super) options: RolloutOptions,
    pub(super) store: Mutex<Store>,
    pub(super) workspace: &'a Workspace,
    /// The common part of commands.
    pub(super) context: &'a Context,
}

impl Rollout<'_> {
    /// Upgrades the devices, which are in the order of their waves.
    ///
    /// # Errors
    /// Returns an error when the store fails or the system refuses to report interrupts.
    pub(super) fn run(
        &self,
        jobs: &[Job<'_>],
        at_once: usize,
        work: &BoardWork<'_>,
    ) -> Result<Results, Failure> {
        let interrupts = Interrupts::watch()?;
        let last = jobs.last().map_or(0, |job| job.wave);
        let mut results = Results {
            of_boards: Vec::with_capacity(jobs.len()),
            ending: None,
        };
        let mut failures = Failures::default();
        let mut outcome = outcome::COMPLETE;
        for wave in jobs.chunk_by(|one, other| one.wave == other.wave) {
            let number = wave.first().map_or(0, |job| job.wave);
            if results.ending.is_some() {
                results.of_boards.extend(wave.iter().map(|_| None));
                continue;
            }
            if last > 1 {
                tell(&format!("wave {number} of {last}: {} devices", wave.len()));
            }
            let mut of_wave = self.wave(wave, at_once, failures.in_all, &interrupts, work);
            self.examine(wave, &mut of_wave, number == last, &interrupts)?;
            failures.in_wave = of_wave
                .iter()
                .filter(|result| is_failure(result.as_ref()))
                .count();
            failures.in_all += failures.in_wave;
            let reason = if interrupts.count() > 0 {
                outcome = outcome::INTERRUPTED;
                Some(format!("interrupted in wave {number} of {last}"))
            } else if failures.stop(self.options.stop_after, wave.len()) {
                outcome = outcome::STOPPED;
                Some(format!(
                    "stopped in wave {number} of {last}: {} failed",
                    failures.in_all
                ))
            } else {
                None
            };
            results.ending = reason.map(|reason| {
                format!("{reason}; `regatta device upgrade --continue` continues with the remaining devices")
            });
            results.of_boards.extend(of_wave);
        }
        let is_complete = results
            .of_boards
            .iter()
            .all(|result| matches!(result, Some(Ok(_))));
        if is_complete {
            results.ending = None;
        }
        if let Some(rollout) = self.number {
            let outcome = match (is_complete, outcome) {
                (true, _) => outcome::COMPLETE,
                (false, outcome::COMPLETE) => outcome::INCOMPLETE,
                (false, other) => other,
            };
            self.store().rollouts().set_outcome(rollout, Some(outcome))?;
        }
        Ok(results)
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins the devices of a wave until failures or a user stop it.
    fn wave(
        &self,
        wave: &[Job<'_>],
        at_once: usize,
        earlier: usize,
        interrupts: &Interrupts,
        work: &BoardWork<'_>,
    ) -> Vec<BoardResult> {
        let failures = Mutex::new(Failures {
            in_all: earlier,
            in_wave: 0,
        });
        let continues_after = |result: &Result<DeployOutcome, BoardError>| {
            let mut failures = failures.lock().unwrap_or_else(PoisonError::into_inner);
            if is_failure(Some(result)) {
                failures.in_all += 1;
                failures.in_wave += 1;
            }
            interrupts.count() == 0 && !failures.stop(self.options.stop_after, wave.len())
        };
        all(wave, at_once, continues_after, |job| self.attempt(job, work))
    }

    /// Makes an attempt. A good one stays open until its wave was examined.
    fn attempt(&self, job: &Job<'_>, work: &BoardWork<'_>) -> Result<DeployOutcome, BoardError> {
        let Some(rollout) = self.number else {
            return work(job.task);
        };
        let begun = self.store().rollouts().begin_attempt(rollout, job.device);
        begun.map_err(DeployError::from)?;
        let result = self.upgrade_unless_busy(job, work);
        if let Err(error) = &result {
            self.fail(job, error)?;
        }
        result
    }

    /// Upgrades a device that has no run. It gets none meanwhile.
    fn upgrade_unless_busy(&self, job: &Job<'_>, work: &BoardWork<'_>) -> Result<DeployOutcome, BoardError> {
        if self.is_busy(job.device)? {
            return Err(BoardError::Busy);
        }
        // A store of its own, because the shared one is locked by one device at a time.
        let store = self.workspace.store().map_err(DeployError::from)?;
        let is_held = maintenance_hold::begin(job.device, &store).map_err(DeployError::from)?;
        let result = match self.is_busy(job.device) {
            Ok(true) => Err(BoardError::Busy),
            Ok(false) => work(job.task),
            Err(error) => Err(error),
        };
        if is_held {
            maintenance_hold::end(job.device, &store).map_err(DeployError::from)?;
        }
        result
    }

    fn is_busy(&self, device: &DeviceId) -> Result<bool, BoardError> {
        if self.options.force {
            return Ok(false);
        }
        let row = self.store().devices().get(device).map_err(DeployError::from)?;
        let has_run = row.is_some_and(|row| row.activity() == DeviceActivity::Busy);
        Ok(has_run
            || self
                .store()
                .meters()
                .leased_device(device)
                .map_err(DeployError::from)?
                .is_some())
    }

    fn fail(&self, job: &Job<'_>, error: &BoardError) -> Result<(), BoardError> {
        let Some(rollout) = self.number else {
            return Ok(());
        };
        let end = RolloutEnd::Failed(error.cause(), &sentence(error));
        let ended = self.store().rollouts().end_attempt(rollout, job.device, end);
        Ok(ended.map_err(DeployError::from)?)
    }

    /// Watches the upgraded devices of a wave, checks them if that was requested, and ends their attempts. A user who interrupts shortens
    /// the watch and leaves out the check, so that these devices are tried again when the upgrade is continued.
    fn examine(
        &self,
        wave: &[Job<'_>],
        results: &mut [BoardResult],
        is_last: bool,
        interrupts: &Interrupts,
    ) -> Result<(), Failure> {
        let Some(rollout) = self.number else {
            return Ok(());
        };
        let is_good = |result: &BoardResult| matches!(result, Some(Ok(_)));
        if !is_last && results.iter().any(is_good) {
            pause(Duration::from_millis(self.options.pause_ms), interrupts);
        }
        let mut present = Vec::new();
        for (job, result) in wave
            .iter()
            .zip(results.iter_mut())
            .filter(|(_, result)| is_good(result))
        {
            match self.store().devices().get(job.device)? {
                Some(row) if row.online && !row.duplicated => present.push(row),
                row => {
                    let state = row.map_or("unknown", |row| row.activity().as_str());
                    let error = BoardError::unhealthy(EndCause::Device, format!("it is {state}"));
                    self.fail(job, &error)
                        .map_err(|error| Failure::could_not(sentence(&error)))?;
                    *result = Some(Err(error));
                }
            }
        }
        let wrong = match self.options.check {
            true if interrupts.count() > 0 => {
                let interrupted =
                    || BoardError::unhealthy(EndCause::Operator, "its check was interrupted".to_owned());
                present.iter().map(|_| Some(interrupted())).collect()
            }
            true => self.check(&present),
            false => present.iter().map(|_| None).collect(),
        };
        let mut wrong = wrong.into_iter();
        for (job, result) in wave.iter().zip(results.iter_mut()) {
            let Some(Ok(outcome)) = result else { continue };
            match wrong.next().flatten() {
                None => {
                    let agent = outcome.agent.as_deref().unwrap_or_default();
                    self.store()
                        .rollouts()
                        .end_attempt(rollout, job.device, RolloutEnd::Good(agent))?;
                }
                Some(error) => {
                    self.fail(job, &error)
                        .map_err(|error| Failure::could_not(sentence(&error)))?;
                    *result = Some(Err(error));
                }
            }
        }
        Ok(())
    }

    /// Makes the known runs of `regatta device check` on the devices. Returns what is wrong with each.
    fn check(&self, devices: &[DeviceRow]) -> Vec<Option<BoardError>> {
        let store = self.store();
        let wait = Wait {
            context: self.context,
            workspace: self.workspace,
            store: &store,
            shows_progress: false,
            longest: None,
            is_viewer: false,
        };
        match device_check::check(KnownRuns::USUAL, devices, wait) {
            Ok(checked) => checked
                .into_iter()
                .map(|checked| match checked.verdict {
                    CheckVerdict::Passed(_) => None,
                    CheckVerdict::Failed(reason) => Some(BoardError::unhealthy(EndCause::Device, reason)),
                    CheckVerdict::Undecided(reason) => {
                        Some(BoardError::unhealthy(EndCause::Infrastructure, reason))
                    }
                })
                .collect(),
            Err(failure) => {
                let reason = failure.sentence();
                let error = || BoardError::unhealthy(EndCause::Infrastructure, reason.clone());
                devices.iter().map(|_| Some(error())).collect()
            }
        }
    }
}

/// Returns whether a result counts against the upgrade. A device that has a run is only left for later.
const fn is_failure(result: Option<&Result<DeployOutcome, BoardError>>) -> bool {
    matches!(result, Some(Err(error)) if !matches!(error, BoardError::Busy))
}

fn pause(length: Duration, interrupts: &Interrupts) {
    let begun = Instant::now();
    while begun.elapsed() < length && interrupts.count() == 0 {
        thread::sleep(LOOK.min(length));
    }
}
