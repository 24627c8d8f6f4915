//! A run on the device: its directory, its job and its delivery. This type enforces the rules of the state machine. It keeps the
//! disk consistent with memory: a stream is in the journal before the run's state depends on it. It does not start processes or
//! send messages.

use std::time::Instant;

use regatta_types::{
    RunId, StreamName,
    documents::{DeviceFacts, RunPhase, RunState, StateProof, WindowCost, end_reason},
};
use regatta_wire::message::{Ack, StateReport};

use super::{
    job::{Ending, Job, ProcessIdentity},
    run_delivery::RunDelivery,
    run_dir::{RunDir, RunDirError, Unflushed},
    sealed::Sealed,
    storage::Storage,
    window_policy::WindowPolicy,
};
use crate::daemon::durable::Reserve;

/// Revisions skipped after a restart. A run cannot publish more states than this without writing one to disk: asset
/// progress is published every two seconds.
const SKIPPED_REVISIONS: u64 = 1 << 20;

/// A run on the device's disk.
#[derive(Debug)]
pub(crate) struct Run {
    id: RunId,
    dir: RunDir,
    job: Job,
    delivery: RunDelivery,
    /// Whether sealing has begun, so that flushed bytes may be sent.
    sealing_has_begun: bool,
    window_policy: WindowPolicy,
    /// Reserved disk space for the job.
    reserve: Reserve,
}

impl Run {
    /// Opens a run and its delivery.
    pub(crate) fn open(
        id: RunId,
        dir: RunDir,
        job: Job,
        window_policy: WindowPolicy,
        storage: &Storage,
    ) -> Self {
        Self {
            id,
            delivery: RunDelivery::open(id, dir.clone(), storage.window_chunks),
            sealing_has_begun: job.sealed,
            dir,
            job,
            window_policy,
            reserve: storage.reserve.clone(),
        }
    }

    /// Returns the run's id.
    pub(crate) const fn id(&self) -> RunId {
        self.id
    }

    /// Returns the run's directory.
    pub(crate) const fn dir(&self) -> &RunDir {
        &self.dir
    }

    /// Returns the run's persistent job.
    pub(crate) const fn job(&self) -> &Job {
        &self.job
    }

    /// Returns the daemon's behaviour during the run's measurement window.
    pub(crate) const fn window_policy(&self) -> WindowPolicy {
        self.window_policy
    }

    /// Returns the run's delivery.
    pub(crate) const fn delivery(&self) -> &RunDelivery {
        &self.delivery
    }

    /// Returns the run's delivery, to send from it.
    pub(crate) const fn delivery_mut(&mut self) -> &mut RunDelivery {
        &mut self.delivery
    }

    /// Returns the run's phase.
    pub(crate) const fn phase(&self) -> RunPhase {
        self.job.state.phase
    }

    /// Returns whether the run process has not been started yet: the run is queued or its assets are being downloaded.
    pub(crate) fn waits_for_its_start(&self) -> bool {
        let before_its_process = match self.phase() {
            RunPhase::Queued => true,
            RunPhase::Preparing => self.job.before.is_none(),
            _ => false,
        };
        before_its_process && self.job.ending.is_none()
    }

    /// Returns whether the run is sealed and the coordinator has all of its files.
    pub(crate) fn is_delivered(&self) -> bool {
        self.job.sealed && !self.needs_sealing() && self.delivery.is_delivered()
    }

    /// Returns whether the run must be sealed: it has ended unsealed, has pending files, or has lost part of its
    /// journal.
    pub(crate) fn needs_sealing(&self) -> bool {
        if self.job.sealed {
            !self.job.unsealed_files.is_empty() || !self.delivery.is_complete()
        } else {
            self.job.ending.is_some()
        }
    }

    /// Returns whether flushed bytes of the run may be sent while no run is active: it is sealed or being sealed.
    pub(crate) const fn may_be_sent(&self) -> bool {
        self.sealing_has_begun
    }

    /// Records that sealing begins: files that it has flushed may be sent.
    pub(crate) const fn begin_sealing(&mut self) {
        self.sealing_has_begun = true;
    }

    /// Returns whether the run may be removed: the coordinator has released it with a signed command, and it is final
    /// and delivered.
    pub(crate) fn may_be_removed(&self) -> bool {
        self.job.released && self.phase().is_final() && self.is_delivered()
    }

    /// Marks the run as released: the coordinator has recorded it with every file.
    pub(crate) fn release(&mut self) {
        if !std::mem::replace(&mut self.job.released, true) {
            tracing::info!("run {}: delivered; the coordinator has every file", self.id);
            self.save();
        }
    }

    /// Sends streams again that the coordinator does not have completely. This cancels an earlier release, because the
    /// coordinator cannot have recorded all files.
    pub(crate) fn resend(&mut self, streams: &[StreamName]) {
        if streams.is_empty() {
            return;
        }
        if std::mem::take(&mut self.job.released) {
            self.save();
        }
        self.delivery.resend(streams);
    }

    /// Returns whether sealed files wait for delivery.
    pub(crate) fn has_backlog(&self) -> bool {
        self.job.sealed && !self.delivery.is_delivered()
    }

    /// Returns the state report to publish. It lists pending files too, so that the coordinator waits for them.
    pub(crate) fn report(&self) -> StateReport {
        let mut streams = Vec::new();
        if self.job.sealed {
            streams = self.delivery.streams();
            streams.extend(self.job.unsealed_files.iter().cloned());
            streams.sort();
            streams.dedup();
        }
        StateReport {
            run: self.id,
            state: self.job.state.clone(),
            streams,
        }
    }

    /// Enters a phase and writes the job. Returns `false` if the state machine does not allow the transition.
    pub(crate) fn enter(&mut self, phase: RunPhase, reason: Option<String>) -> bool {
        let from = self.phase();
        if !from.may_become(phase) {
            tracing::warn!("run {}: {from} cannot become {phase}", self.id);
            return false;
        }
        self.job.state = RunState {
            phase,
            reason,
            revision: self.job.state.revision.saturating_add(1),
        };
        match &self.job.state.reason {
            Some(reason) => tracing::info!("run {}: {phase}: {reason}", self.id),
            None => tracing::info!("run {}: {phase}", self.id),
        }
        self.save();
        true
    }

    /// Writes the job to disk and only logs failures. A restart then finds an earlier state, as after a power cut.
    pub(crate) fn save(&self) {
        if let Err(e) = self.try_save() {
            tracing::error!("run {}: {:#}", self.id, anyhow::Error::from(e));
        }
    }

    /// Writes the job to disk. On a full disk, it first releases the reserve.
    ///
    /// # Errors
    /// When the job cannot be written.
    pub(crate) fn try_save(&self) -> Result<(), RunDirError> {
        match self.dir.write_job(&self.job) {
            Err(e) if e.is_disk_full() && self.reserve.release() => self.dir.write_job(&self.job),
            written => written,
        }
    }

    /// Skips revisions after a restart. The earlier daemon may have published states that it did not write, and the
    /// coordinator only accepts higher revisions.
    pub(crate) fn skip_revisions(&mut self) {
        let state = &mut self.job.state;
        state.revision = state.revision.saturating_add(SKIPPED_REVISIONS);
    }

    /// Allows delivery of flushed bytes whose hashes are not known yet.
    pub(crate) fn open_for_delivery(&mut self, on_disk: &[(StreamName, u64)]) {
        self.delivery.grow(on_disk);
    }

    /// Records that logged bytes may not be on disk. The run then fails, however it ends.
    pub(crate) fn set_unflushed(&mut self, error: Unflushed) {
        let why = format!("{:#}", anyhow::Error::from(error));
        tracing::error!("run {}: {why}; nothing more is sent while it is running", self.id);
        self.job.unflushed.get_or_insert(why);
        self.save();
    }

    /// Returns how the run ended, with a failed flush as an additional reason.
    fn ending(&self) -> Ending {
        let ending = self.job.ending.clone().unwrap_or(Ending {
            phase: RunPhase::Failed,
            reason: None,
        });
        match &self.job.unflushed {
            Some(why) => ending.also(why.clone()),
            None => ending,
        }
    }

    /// Returns the state that the evidence states. If the run was sealed before, this is its published state, otherwise
    /// its ending.
    pub(crate) fn provable_state(&self) -> RunState {
        let revision = self.job.state.revision.saturating_add(1);
        if self.job.sealed {
            return RunState {
                revision,
                ..self.job.state.clone()
            };
        }
        let Ending { phase, reason } = self.ending();
        RunState {
            phase,
            reason,
            revision,
        }
    }

    /// Records the device's facts before the run. The next change of the state writes them to disk.
    pub(crate) fn set_facts_before(&mut self, facts: DeviceFacts) {
        self.job.before = Some(facts);
    }

    /// Records the proof of the device's state. The end of the run writes it to disk.
    pub(crate) fn set_device_state(&mut self, proof: StateProof) {
        self.job.device_state = Some(proof);
    }

    /// Records the daemon's resource usage in the measurement window.
    pub(crate) fn set_window_cost(&mut self, cost: WindowCost) {
        self.job.window = cost;
    }

    /// Records the run process on disk, so that a restarted daemon can kill it.
    ///
    /// # Errors
    /// When the job cannot be written.
    pub(crate) fn set_process(&mut self, process: ProcessIdentity) -> Result<(), RunDirError> {
        self.job.process = Some(process);
        self.try_save()
    }

    /// Removes and returns the run process that an earlier daemon recorded.
    pub(super) const fn take_process(&mut self) -> Option<ProcessIdentity> {
        self.job.process.take()
    }

    /// Records that the run has ended and only needs sealing.
    pub(crate) fn end(&mut self, ending: Ending) {
        self.job.process = None;
        self.job.ending = Some(ending);
        self.save();
    }

    /// Applies the result of sealing: fixes the streams and enters the run's last phase on the device.
    pub(crate) fn set_sealed(&mut self, sealed: Sealed) {
        let had_unsealed_files =
            !std::mem::replace(&mut self.job.unsealed_files, sealed.unsealed_files()).is_empty();
        self.delivery.seal(sealed.streams, sealed.all_hashed);
        let was_sealed = std::mem::replace(&mut self.job.sealed, true);
        if was_sealed {
            if let Some(e) = sealed.incomplete {
                let why = anyhow::Error::from(e);
                tracing::error!("run {}: {why:#}", self.id);
            }
            if had_unsealed_files {
                // The new revision publishes a changed file list. The coordinator ignores lists of revisions that it
                // knows.
                self.job.state = self.provable_state();
            }
            self.save();
            return;
        }
        let ending = match sealed.incomplete {
            None => self.ending(),
            Some(e) => self.ending().also(format!(
                "{}: {:#}",
                end_reason::NOT_SEALED,
                anyhow::Error::from(e)
            )),
        };
        self.enter(ending.phase, ending.reason);
    }

    /// Applies an acknowledgement. Returns `true` if the run's state changed.
    pub(crate) fn acknowledge(&mut self, ack: &Ack, now: Instant) -> bool {
        self.delivery.acknowledge(ack, now);
        self.settle_delivery()
    }

    /// Finishes a complete delivery: a draining run becomes done. Returns `true` if the state changed.
    pub(crate) fn settle_delivery(&mut self) -> bool {
        if !self.is_delivered() {
            return false;
        }
        self.delivery.close_journal();
        self.phase() == RunPhase::Draining && self.enter(RunPhase::Done, None)
    }
}

#[cfg(test)]
mod tests;
