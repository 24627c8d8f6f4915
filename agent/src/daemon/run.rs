//! A run as the daemon holds it: its directory, its job, its outbox. Keeps the state machine's rules and the disk in step
//! with memory; starts and sends nothing.

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

/// More states than a run can have published without writing one down: an asset's progress is one every two seconds.
const SKIPPED_REVISIONS: u64 = 1 << 20;

/// What every run on the device's disk shares.
#[derive(Debug, Clone)]
pub(crate) struct Storage {
    /// Unacknowledged chunks that a run may have on their way.
    pub(crate) window_chunks: u32,
    /// Space for states and evidence where the disk is full.
    pub(crate) reserve: Reserve,
}

/// A run that is on the device's disk.
#[derive(Debug)]
pub(crate) struct Run {
    id: RunId,
    /// Where it lies.
    pub(crate) dir: RunDir,
    /// What is remembered of it.
    pub(crate) job: Job,
    /// Its delivery.
    pub(crate) outbox: Outbox,
    /// Whether the outbox holds every file of the run. After damage to the journal it does not until the run is sealed again.
    outbox_is_complete: bool,
    /// Open while there is something to deliver.
    journal: Option<Journal>,
    /// How the daemon is to behave while LoadGen runs.
    pub(crate) window_policy: WindowPolicy,
    /// Space for the job where the disk is full.
    reserve: Reserve,
}

impl Run {
    /// A run with its delivery as the journal tells it. Without a readable journal everything is sent again.
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
        // A directory that cannot be listed is reported by the sealing.
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

    /// The run's id.
    pub(crate) const fn id(&self) -> RunId {
        self.id
    }

    /// Where the run stands.
    pub(crate) const fn phase(&self) -> RunPhase {
        self.job.state.phase
    }

    /// Whether its process is still to be started: it is queued, or its assets are on their way.
    pub(crate) fn waits_for_its_start(&self) -> bool {
        let before_its_process = match self.phase() {
            RunPhase::Queued => true,
            RunPhase::Preparing => self.job.before.is_none(),
            _ => false,
        };
        before_its_process && self.job.ending.is_none()
    }

    /// Whether the run has ended, is sealed, and the coordinator has all of it.
    pub(crate) fn is_delivered(&self) -> bool {
        self.job.sealed && !self.wants_sealing() && self.outbox.is_delivered()
    }

    /// Whether the run has ended and is not sealed; or is sealed, and owes files or has lost part of its journal.
    pub(crate) fn wants_sealing(&self) -> bool {
        if self.job.sealed {
            !self.job.owed.is_empty() || !self.outbox_is_complete
        } else {
            self.job.ending.is_some()
        }
    }

    /// Whether the run may be removed from this disk: the coordinator's signed word says that it has all of it, and nothing here speaks
    /// against that.
    pub(crate) fn may_be_removed(&self) -> bool {
        self.job.released && self.phase().is_final() && self.is_delivered()
    }

    /// The coordinator has recorded the run with every file: it may be removed.
    pub(crate) fn release(&mut self) {
        if !std::mem::replace(&mut self.job.released, true) {
            tracing::info!("run {}: released by the coordinator", self.id);
            self.write_down();
        }
    }

    /// Sends streams again that the coordinator does not have whole. It cannot have recorded the run with all of its files then, so
    /// that an earlier release no longer counts.
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

    /// Whether files wait for delivery.
    pub(crate) fn has_backlog(&self) -> bool {
        self.job.sealed && !self.outbox.is_delivered()
    }

    /// What is told of the run. What it owes is listed, so that the coordinator's record waits for it.
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

    /// Takes a step of the state machine and writes it down. `false` when the machine does not allow it.
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

    /// Writes the job to disk, if possible. Otherwise memory goes on: a restart then finds an earlier state, and deals with it as
    /// after a power cut.
    pub(crate) fn write_down(&self) {
        if let Err(e) = self.try_write_down() {
            tracing::error!("run {}: {:#}", self.id, anyhow::Error::from(e));
        }
    }

    /// Writes the job to disk, on a full disk with the reserve's space.
    ///
    /// # Errors
    /// When the disk does not take it.
    pub(crate) fn try_write_down(&self) -> Result<(), RunDirError> {
        match self.dir.write_job(&self.job) {
            Err(e) if e.is_disk_full() && self.reserve.release() => self.dir.write_job(&self.job),
            written => written,
        }
    }

    /// Continues with revisions that were not used before the daemon went down. States may have been published that the disk does
    /// not have, and the coordinator takes only revisions above the last.
    pub(crate) fn skip_revisions(&mut self) {
        let state = &mut self.job.state;
        state.revision = state.revision.saturating_add(SKIPPED_REVISIONS);
    }

    /// So much of these streams is on this disk, though without their hashes yet: it may be sent.
    pub(crate) fn open_for_delivery(&mut self, on_disk: &[(StreamName, u64)]) {
        for (stream, length) in on_disk {
            self.outbox.grow(stream, *length);
        }
    }

    /// What was logged may not be on this disk: the run has failed, however it ends.
    pub(crate) fn take_unflushed(&mut self, error: Unflushed) {
        let why = format!("{:#}", anyhow::Error::from(error));
        tracing::error!("run {}: {why}; nothing more is sent while it is on", self.id);
        self.job.unflushed.get_or_insert(why);
        self.write_down();
    }

    /// How the run ended, with what was wrong besides.
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

    /// The state that the evidence is to prove: how the run ended, or, where it was sealed before, what has been told of it since.
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

    /// The run has ended, and only sealing is left.
    pub(crate) fn end(&mut self, ending: Ending) {
        self.job.process = None;
        self.job.ending = Some(ending);
        self.write_down();
    }

    /// Takes what sealing came to: the streams are fixed, the run's last state on the device follows.
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
                // The same state with another list of files: the coordinator takes no list of a revision that it knows.
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

    /// Takes an acknowledgement. `true` when it changed the run's state.
    pub(crate) fn acknowledge(&mut self, ack: &Ack, now: Instant) -> bool {
        if let Some(record) = self.outbox.acknowledge(ack, now) {
            self.keep(&record);
        }
        self.settle_delivery()
    }

    /// Ends a delivery that is complete: a draining run is done. `true` when the state changed.
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
