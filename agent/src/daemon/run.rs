//! A run in the daemon: its directory, job and outbox. This module enforces the rules of the state machine and keeps
//! the disk consistent with memory. It does not start processes or send messages.

use std::time::Instant;

use regatta_types::{
    RunId, StreamName,
    documents::{RunPhase, RunState},
};
use regatta_wire::message::{Ack, StateReport};

use super::{
    durable::Reserve,
    journal::{Journal, Record},
    outbox::Outbox,
    run_dir::{Ending, Job, RunDir, RunDirError, Unflushed},
    sealing::Sealed,
    window::WindowPolicy,
};

/// Revisions skipped after a restart. A run cannot publish more states than this without writing one to disk: asset
/// progress is published every two seconds.
const SKIPPED_REVISIONS: u64 = 1 << 20;

/// The settings and the reserve that all runs share.
#[derive(Debug, Clone)]
pub(crate) struct Storage {
    /// Largest number of unacknowledged chunks of a run.
    pub(crate) window_chunks: u32,
    /// Reserved disk space for states and evidence.
    pub(crate) reserve: Reserve,
}

/// A run on the device's disk.
#[derive(Debug)]
pub(crate) struct Run {
    id: RunId,
    /// The run's directory.
    pub(crate) dir: RunDir,
    /// The run's persistent job.
    pub(crate) job: Job,
    /// The run's delivery state.
    pub(crate) outbox: Outbox,
    /// Whether the outbox contains every file of the run. After damage to the journal, it does not until the run is
    /// sealed again.
    outbox_is_complete: bool,
    /// The journal, open while there is something to deliver.
    journal: Option<Journal>,
    /// The daemon's behaviour during the measurement window.
    pub(crate) window_policy: WindowPolicy,
    /// Reserved disk space for the job.
    reserve: Reserve,
}

impl Run {
    /// Opens a run and replays its journal. If the journal cannot be read, everything is sent again.
    pub(crate) fn open(
        id: RunId,
        dir: RunDir,
        job: Job,
        window_policy: WindowPolicy,
        storage: &Storage,
    ) -> Self {
        let mut outbox = Outbox::new(storage.window_chunks);
        let journal = match Journal::open(&dir.journal_path()) {
            Ok((journal, records)) => {
                records.iter().for_each(|record| outbox.replay(record));
                Some(journal)
            }
            Err(e) => {
                tracing::error!("run {id}: the delivery's journal cannot be used: {e}");
                None
            }
        };
        // Sealing reports a directory that cannot be listed.
        let outbox_is_complete = dir
            .streams()
            .is_ok_and(|(streams, _)| streams.iter().all(|stream| outbox.is_sealed(stream)));
        Self {
            id,
            dir,
            job,
            outbox,
            outbox_is_complete,
            journal,
            window_policy,
            reserve: storage.reserve.clone(),
        }
    }

    /// Returns the run's id.
    pub(crate) const fn id(&self) -> RunId {
        self.id
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
        self.job.sealed && !self.wants_sealing() && self.outbox.is_delivered()
    }

    /// Returns whether the run must be sealed: it has ended unsealed, has pending files, or has lost part of its
    /// journal.
    pub(crate) fn wants_sealing(&self) -> bool {
        if self.job.sealed {
            !self.job.owed.is_empty() || !self.outbox_is_complete
        } else {
            self.job.ending.is_some()
        }
    }

    /// Returns whether the run may be removed: the coordinator has released it with a signed command, and it is final
    /// and delivered.
    pub(crate) fn may_be_removed(&self) -> bool {
        self.job.released && self.phase().is_final() && self.is_delivered()
    }

    /// Marks the run as released: the coordinator has recorded it with every file.
    pub(crate) fn release(&mut self) {
        if !std::mem::replace(&mut self.job.released, true) {
            tracing::info!("run {}: released by the coordinator", self.id);
            self.write_down();
        }
    }

    /// Sends streams again that the coordinator does not have completely. This cancels an earlier release, because the
    /// coordinator cannot have recorded all files.
    pub(crate) fn resend(&mut self, streams: &[StreamName]) {
        if streams.is_empty() {
            return;
        }
        if std::mem::take(&mut self.job.released) {
            self.write_down();
        }
        let restarted = self.outbox.resend(streams);
        if restarted.is_empty() {
            return;
        }
        tracing::warn!(
            "run {}: the coordinator lacks {} of its files, which were acknowledged: they are sent again",
            self.id,
            restarted.len()
        );
        if self.journal.is_none() {
            let journal = Journal::open(&self.dir.journal_path());
            self.journal = journal
                .map(|(journal, _)| journal)
                .inspect_err(|e| tracing::error!("run {}: {e}: its journal cannot be used", self.id))
                .ok();
        }
        restarted.iter().for_each(|record| self.keep(record));
    }

    /// Returns whether sealed files wait for delivery.
    pub(crate) fn has_backlog(&self) -> bool {
        self.job.sealed && !self.outbox.is_delivered()
    }

    /// Returns the state report to publish. It lists pending files too, so that the coordinator waits for them.
    pub(crate) fn report(&self) -> StateReport {
        let mut streams = Vec::new();
        if self.job.sealed {
            streams = self.outbox.names();
            streams.extend(self.job.owed.iter().cloned());
            if !self.outbox_is_complete {
                streams.extend(self.dir.streams().map(|(files, _)| files).unwrap_or_default());
            }
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
        self.write_down();
        true
    }

    /// Writes the job to disk and only logs failures. A restart then finds an earlier state, as after a power cut.
    pub(crate) fn write_down(&self) {
        if let Err(e) = self.try_write_down() {
            tracing::error!("run {}: {:#}", self.id, anyhow::Error::from(e));
        }
    }

    /// Writes the job to disk. On a full disk, it first releases the reserve.
    ///
    /// # Errors
    /// When the job cannot be written.
    pub(crate) fn try_write_down(&self) -> Result<(), RunDirError> {
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
        for (stream, length) in on_disk {
            self.outbox.grow(stream, *length);
        }
    }

    /// Records that logged bytes may not be on disk. The run then fails, however it ends.
    pub(crate) fn take_unflushed(&mut self, error: Unflushed) {
        let why = format!("{:#}", anyhow::Error::from(error));
        tracing::error!("run {}: {why}; nothing more is sent while it is on", self.id);
        self.job.unflushed.get_or_insert(why);
        self.write_down();
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

    /// Records that the run has ended and only needs sealing.
    pub(crate) fn end(&mut self, ending: Ending) {
        self.job.process = None;
        self.job.ending = Some(ending);
        self.write_down();
    }

    /// Applies the result of sealing: fixes the streams and enters the run's last phase on the device.
    pub(crate) fn take_sealed(&mut self, sealed: Sealed) {
        let owed_before = !std::mem::replace(&mut self.job.owed, sealed.owed()).is_empty();
        if sealed.all_hashed {
            let names: Vec<StreamName> = sealed.streams.iter().map(|stream| stream.name.clone()).collect();
            self.outbox.retain(&names);
            self.outbox_is_complete = true;
        }
        for stream in sealed.streams {
            self.outbox.seal(&stream.name, stream.length, stream.sha256);
            let record = Record::Sealed {
                stream: stream.name,
                length: stream.length,
                sha256: stream.sha256,
            };
            self.keep(&record);
        }
        self.flush_journal();
        let was_sealed = std::mem::replace(&mut self.job.sealed, true);
        if was_sealed {
            if let Some(e) = sealed.incomplete {
                let why = anyhow::Error::from(e);
                tracing::error!("run {}: {why:#}; tried again at the next start", self.id);
            }
            if owed_before {
                // The new revision publishes a changed file list. The coordinator ignores lists of revisions that it
                // knows.
                self.job.state = self.provable_state();
            }
            self.write_down();
            return;
        }
        let ending = match sealed.incomplete {
            None => self.ending(),
            Some(e) => self.ending().also(format!(
                "the run could not be sealed: {:#}",
                anyhow::Error::from(e)
            )),
        };
        self.enter(ending.phase, ending.reason);
    }

    /// Applies an acknowledgement. Returns `true` if the run's state changed.
    pub(crate) fn acknowledge(&mut self, ack: &Ack, now: Instant) -> bool {
        if let Some(record) = self.outbox.acknowledge(ack, now) {
            self.keep(&record);
        }
        self.settle_delivery()
    }

    /// Finishes a complete delivery: a draining run becomes done. Returns `true` if the state changed.
    pub(crate) fn settle_delivery(&mut self) -> bool {
        if !self.is_delivered() {
            return false;
        }
        self.flush_journal();
        self.journal = None;
        self.phase() == RunPhase::Draining && self.enter(RunPhase::Done, None)
    }

    fn keep(&mut self, record: &Record) {
        if let Some(journal) = &mut self.journal
            && let Err(e) = journal.append(record)
        {
            tracing::error!("run {}: the delivery's journal cannot be written: {e}", self.id);
        }
    }

    fn flush_journal(&self) {
        if let Some(Err(e)) = self.journal.as_ref().map(Journal::sync) {
            tracing::error!("run {}: the delivery's journal cannot be flushed: {e}", self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use regatta_test_support::small_disk::SmallDisk;

    use super::*;
    use crate::daemon::sealing::SealError;

    fn storage(state_dir: &std::path::Path) -> Storage {
        Storage {
            window_chunks: 4,
            reserve: Reserve::new(state_dir.join("reserve")),
        }
    }

    #[test]
    fn a_state_is_written_to_a_full_disk_with_the_reserve() {
        let Some(disk) = SmallDisk::mount("2m") else {
            return;
        };
        let storage = storage(&disk.path);
        storage.reserve.set_aside().unwrap();
        let (id, job) = (RunId::now(), Job::queued(0));
        let dir = RunDir::create(&disk.path, id, b"{}", &job).unwrap();
        let mut run = Run::open(id, dir.clone(), job, WindowPolicy::default(), &storage);
        disk.fill();
        run.enter(RunPhase::Preparing, None);
        assert_eq!(dir.read_job().unwrap().state, run.job.state);
    }

    #[test]
    fn a_run_whose_files_could_not_be_hashed_is_neither_done_nor_forgotten() {
        let runs = tempfile::tempdir().unwrap();
        let id = RunId::now();
        let mut job = Job::queued(0);
        job.state.phase = RunPhase::Draining;
        job.sealed = true;
        let dir = RunDir::create(runs.path(), id, b"{}", &job).unwrap();
        let mut run = Run::open(
            id,
            dir.clone(),
            job,
            WindowPolicy::default(),
            &storage(runs.path()),
        );
        let sealed = |all_hashed| Sealed {
            streams: Vec::new(),
            unread: Vec::new(),
            all_hashed,
            incomplete: (!all_hashed).then_some(SealError::Thread),
        };
        run.take_sealed(sealed(false));
        assert!(!run.settle_delivery() && !run.is_delivered());
        let owed = dir.read_job().unwrap().owed;
        assert!(!owed.is_empty(), "known to the next start");
        assert_eq!(run.report().streams, owed, "and to the coordinator");
        run.take_sealed(sealed(true));
        assert!(run.settle_delivery() && run.phase() == RunPhase::Done);
    }

    #[test]
    fn a_run_whose_journal_is_lost_is_not_delivered_before_it_is_sealed_again() {
        let runs = tempfile::tempdir().unwrap();
        let id = RunId::now();
        let mut job = Job::queued(0);
        job.state.phase = RunPhase::Failed;
        job.sealed = true;
        let dir = RunDir::create(runs.path(), id, b"{}", &job).unwrap();
        std::fs::write(dir.files().join("run.log"), "the only copy").unwrap();
        let run = Run::open(id, dir, job, WindowPolicy::default(), &storage(runs.path()));
        assert!(!run.is_delivered() && run.wants_sealing());
        assert_eq!(run.report().streams, ["run.log".parse().unwrap()]);
    }
}
