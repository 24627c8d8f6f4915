//! The runs on this device, in order of arrival: accepts and refuses them, keeps their states, and decides which run is
//! next. It does not execute, seal or send them. Its methods return what other components must know.

use std::{
    io,
    time::{Duration, Instant},
};

use regatta_types::{
    DeviceId, RunId, StreamName,
    documents::{RunPhase, RunTask},
};
use regatta_wire::message::{Ack, HeldRun, StateReport};

use super::{
    events::{RequiredAssets, RunEvent, RunStart, RunUpdate},
    job::{Ending, ProcessIdentity},
    run::Run,
    run_dir::{RunDirError, Unflushed},
    run_failure::RunFailure,
    run_store::RunStore,
    sealed::{OnDisk, Sealed},
    spec_check,
};
use crate::config::AgentConfig;

/// Time without acknowledgements after which delivery no longer delays the next run.
const ACKNOWLEDGEMENT_PATIENCE: Duration = Duration::from_secs(3);

/// The runs on this device and what happens to them next.
#[derive(Debug)]
pub(crate) struct RunQueue {
    store: RunStore,
    /// Longest time for which the next run waits for the delivery of earlier ones.
    deliver_first: Duration,
    last_ended: Option<Instant>,
}

/// The progress of delivery, which the next run may have to wait for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeliveryProgress {
    /// Whether the broker is connected.
    pub(crate) connected: bool,
    /// Time of the last acknowledgement.
    pub(crate) last_acknowledgement: Option<Instant>,
}

impl RunQueue {
    /// Recovers the runs on disk.
    ///
    /// # Errors
    /// When the directory of the runs cannot be read. A run whose documents do not parse is logged and skipped. A run
    /// that cannot be read is retried later.
    pub(crate) fn recover(config: &AgentConfig) -> io::Result<Self> {
        let queue = Self {
            store: RunStore::recover(config)?,
            deliver_first: config.deliver_first,
            last_ended: None,
        };
        let runs = queue.iter().count();
        if runs > 0 {
            tracing::info!(
                "runs on disk: {runs}, of which to finish: {}",
                queue.unsealed().count()
            );
        }
        Ok(queue)
    }

    /// Retries the runs that could not be read.
    pub(crate) fn retry_unreadable(&mut self) -> Vec<RunEvent> {
        self.store.retry_unreadable()
    }

    /// Retries the unreadable runs if this one is among them.
    pub(crate) fn retry_if_unreadable(&mut self, id: RunId) -> Vec<RunEvent> {
        if self.store.is_unreadable(id) {
            self.store.retry_unreadable()
        } else {
            Vec::new()
        }
    }

    /// Returns the readable runs.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Run> {
        self.store.iter()
    }

    /// Returns the readable runs, to deliver them.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Run> {
        self.store.iter_mut()
    }

    /// Returns a readable run.
    pub(crate) fn get(&self, id: RunId) -> Option<&Run> {
        self.store.get(id)
    }

    /// Returns the runs that must be sealed.
    pub(crate) fn unsealed(&self) -> impl Iterator<Item = RunId> {
        self.iter().filter(|run| run.needs_sealing()).map(Run::id)
    }

    /// Returns the ids of all runs, including unreadable and refused ones.
    pub(crate) fn known_ids(&self) -> Vec<RunId> {
        self.store.known_ids()
    }

    /// Returns the runs of which [`Self::report`] returns a state.
    pub(crate) fn ids_with_state(&self) -> impl Iterator<Item = RunId> {
        self.store.ids_with_state()
    }

    pub(crate) fn inventory(&self) -> Vec<HeldRun> {
        self.store.inventory()
    }

    /// Returns the state report of a readable or refused run.
    pub(crate) fn report(&self, id: RunId) -> Option<StateReport> {
        self.store.report(id)
    }

    /// Returns the number of bytes that the coordinator does not have.
    pub(crate) fn backlog(&self) -> u64 {
        self.iter().map(|run| run.delivery().backlog()).sum()
    }

    /// Accepts a run, or refuses it with the reason in its state. A known run is not accepted again.
    pub(crate) fn accept(&mut self, id: RunId, spec_json: &[u8], device: &DeviceId) -> Vec<RunEvent> {
        let mut events = Vec::new();
        if !self.store.knows(id)
            && let Err(RunFailure(reason)) = self.try_accept(id, spec_json, device, &mut events)
        {
            self.store.refuse(id, RunPhase::Failed, reason);
        }
        events.push(RunEvent::StateDue(id));
        events
    }

    fn try_accept(
        &mut self,
        id: RunId,
        spec_json: &[u8],
        device: &DeviceId,
        events: &mut Vec<RunEvent>,
    ) -> Result<(), RunFailure> {
        let engines: Vec<_> = regatta_engines::kinds().collect();
        let spec = spec_check::check(spec_json, id, device, &engines).map_err(RunFailure::of)?;
        self.store.make_space(events)?;
        self.store.create(id, &spec, spec_json)?;
        tracing::info!(
            "run {id}: queued: {} {} {} with {}",
            spec.benchmark.name,
            spec.scenario,
            spec.mode,
            spec.engine.kind
        );
        Ok(())
    }

    /// Refuses a run whose command does not parse. A known run ignores the command.
    pub(crate) fn refuse(&mut self, id: RunId, reason: String) -> Option<RunEvent> {
        if self.store.get(id).is_some() {
            tracing::warn!("run {id}: {reason}");
            return None;
        }
        self.store.refuse(id, RunPhase::Failed, reason);
        Some(RunEvent::StateDue(id))
    }

    /// Aborts a run that has not started. The start command of an unknown run may still arrive. It then finds the run
    /// aborted.
    pub(crate) fn abort(&mut self, id: RunId, reason: String, now: Instant) -> Option<RunEvent> {
        if self.store.get(id).is_some_and(Run::waits_for_its_start) {
            let ending = Ending {
                phase: RunPhase::Aborted,
                reason: Some(reason),
            };
            return self.end(id, ending, now);
        }
        if !self.store.knows(id) {
            self.store.refuse(id, RunPhase::Aborted, reason);
        }
        Some(RunEvent::StateDue(id))
    }

    /// Asks the process of a run to stop its model server. Runs with another task ignore it.
    pub(crate) fn stop_server(&mut self, id: RunId) -> RunEvent {
        let Some(run) = self.store.get(id) else {
            return match self.store.knows(id) {
                true => RunEvent::StateDue(id),
                false => RunEvent::Unknown,
            };
        };
        let stopped = run.dir().spec().and_then(|spec| match spec.task {
            RunTask::ModelServer => run.dir().request_server_stop(),
            _ => Ok(()),
        });
        // The coordinator repeats the command until the run has ended.
        if let Err(error) = stopped {
            tracing::warn!("run {id}: {:#}", anyhow::Error::from(error));
        }
        RunEvent::StateDue(id)
    }

    /// Records that the coordinator has released a run.
    pub(crate) fn release(&mut self, id: RunId) {
        if let Some(run) = self.store.get_mut(id) {
            run.release();
        }
    }

    /// Sends streams again that are missing at the coordinator, and the run's state.
    pub(crate) fn resend(&mut self, id: RunId, streams: &[StreamName]) -> RunEvent {
        if let Some(run) = self.store.get_mut(id) {
            run.resend(streams);
        }
        if self.store.knows(id) {
            RunEvent::StateDue(id)
        } else {
            RunEvent::Unknown
        }
    }

    /// Removes a run that the coordinator has released. Other runs stay.
    pub(crate) fn forget(&mut self, id: RunId) -> Option<RunEvent> {
        if let Some(run) = self.store.get(id) {
            if !run.may_be_removed() {
                tracing::warn!(
                    "run {id}: not removed: it is {}, {} and {}",
                    run.phase(),
                    if run.is_delivered() {
                        "delivered"
                    } else {
                        "not completely delivered"
                    },
                    if run.job().released {
                        "released"
                    } else {
                        "not released"
                    },
                );
                return Some(RunEvent::StateDue(id));
            }
            if !self.store.remove(id) {
                return None;
            }
            tracing::info!("run {id}: removed");
        }
        self.store.forget_refused(id);
        Some(RunEvent::Removed(id))
    }

    /// Returns the queued run that arrived first.
    fn next_queued(&self) -> Option<&Run> {
        let queued = self.iter().filter(|run| run.waits_for_its_start());
        queued.min_by_key(|run| run.job().arrival)
    }

    /// Returns the earliest start of the next queued run, if it must wait. Delivery goes first while acknowledgements
    /// arrive.
    pub(crate) fn next_start(&self, now: Instant, delivery: DeliveryProgress) -> Option<Instant> {
        self.next_queued()?;
        let delivering = delivery.connected && self.iter().any(Run::has_backlog);
        let ended = self.last_ended.filter(|_| delivering)?;
        let last = delivery.last_acknowledgement.map_or(ended, |at| at.max(ended));
        let start = (ended + self.deliver_first).min(last + ACKNOWLEDGEMENT_PATIENCE);
        (start > now).then_some(start)
    }

    /// Returns whether a queued run may start now.
    pub(crate) fn is_start_due(&self, now: Instant, delivery: DeliveryProgress) -> bool {
        self.next_queued().is_some() && self.next_start(now, delivery).is_none()
    }

    /// Starts the next queued run if it is due. A run that cannot start ends.
    pub(crate) fn start_next(&mut self, now: Instant, delivery: DeliveryProgress) -> Vec<RunEvent> {
        let mut events = Vec::new();
        if self.next_start(now, delivery).is_some() {
            return events;
        }
        let Some(id) = self.next_queued().map(Run::id) else {
            return events;
        };
        match self.try_start(id, &mut events) {
            Ok(start) => events.extend(start.map(RunEvent::StartDue)),
            Err(RunFailure(reason)) => events.extend(self.end(id, Ending::failed(reason), now)),
        }
        events
    }

    fn try_start(&mut self, id: RunId, events: &mut Vec<RunEvent>) -> Result<Option<RunStart>, RunFailure> {
        self.store.make_space(events)?;
        let Some(run) = self.store.get(id) else {
            return Ok(None);
        };
        let assets = run.dir().assets().map_err(RunFailure::of)?;
        Ok(Some(RunStart {
            run: id,
            dir: run.dir().clone(),
            window_policy: run.window_policy(),
            assets: assets.map(|assets| RequiredAssets {
                assets,
                pinned: self.store.pinned_assets(),
            }),
        }))
    }

    /// Records an update of a run.
    pub(crate) fn update(&mut self, id: RunId, update: RunUpdate, now: Instant) -> Option<RunEvent> {
        let run = self.store.get_mut(id)?;
        match update {
            RunUpdate::Phase(phase, reason) => {
                return run.enter(phase, reason).then_some(RunEvent::StateDue(id));
            }
            RunUpdate::FactsBefore(facts) => run.set_facts_before(*facts),
            RunUpdate::DeviceState(proof) => run.set_device_state(*proof),
            RunUpdate::WindowCost(cost) => run.set_window_cost(cost),
            RunUpdate::Ended(ending) => return self.end(id, ending, now),
        }
        None
    }

    /// Records a run process on disk.
    ///
    /// # Errors
    /// When it cannot be written. A restarted daemon could then not kill the process.
    pub(crate) fn set_process(&mut self, id: RunId, process: ProcessIdentity) -> Result<(), RunDirError> {
        match self.store.get_mut(id) {
            Some(run) => run.set_process(process),
            None => Ok(()),
        }
    }

    fn end(&mut self, id: RunId, ending: Ending, now: Instant) -> Option<RunEvent> {
        self.store.release_reserve_if_full();
        self.store.get_mut(id)?.end(ending);
        self.last_ended = Some(now);
        Some(RunEvent::SealingDue(id))
    }

    /// Begins sealing of a run: files that it has flushed may be sent.
    pub(crate) fn begin_sealing(&mut self, id: RunId) -> Option<&Run> {
        let run = self.store.get_mut(id)?;
        run.begin_sealing();
        Some(run)
    }

    /// Allows delivery of flushed bytes.
    pub(crate) fn open_for_delivery(&mut self, id: RunId, on_disk: &OnDisk) {
        if let Some(run) = self.store.get_mut(id) {
            run.open_for_delivery(on_disk);
        }
    }

    /// Records that logged bytes may not be on disk. The run then fails.
    pub(crate) fn set_unflushed(&mut self, id: RunId, error: Unflushed) {
        if let Some(run) = self.store.get_mut(id) {
            run.set_unflushed(error);
        }
    }

    /// Applies the result of sealing.
    pub(crate) fn set_sealed(&mut self, id: RunId, sealed: Sealed) -> Option<RunEvent> {
        let run = self.store.get_mut(id)?;
        run.set_sealed(sealed);
        run.settle_delivery();
        Some(RunEvent::StateDue(id))
    }

    /// Applies an acknowledgement.
    pub(crate) fn acknowledge(&mut self, id: RunId, ack: &Ack, now: Instant) -> Option<RunEvent> {
        let changed = self.store.get_mut(id)?.acknowledge(ack, now);
        changed.then_some(RunEvent::StateDue(id))
    }
}

#[cfg(test)]
mod tests;
