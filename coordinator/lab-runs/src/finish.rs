//! Finishes runs: compares files with the evidence, and judges accuracy and audits. `record_writer` writes `record.json` and the store. The
//! store says which runs are due, so a killed coordinator repeats the work. Large runs are judged on a separate thread.

use std::{
    collections::BTreeMap,
    path::Path,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::Context as _;
use regatta_catalogue::catalogue::Catalogue;
use regatta_mllog::read::file_name;
use regatta_types::{
    Mode, RunId,
    benchmark::AccuracyMetric,
    documents::{AccuracyResult, DeliveryProof, Document as _, Record, RunSpec, end_reason},
};

use super::{
    accuracy, audit,
    early_accuracy::EarlyAccuracy,
    evidence::{self, Proven},
    judging_lane::JudgingLane,
    judging_mark::JudgingMarks,
    logged::{Logged, NotJudged, open_log, outcome},
    missing::Missing,
    record_writer::{PendingRecord, write_records},
    retry_schedule::RetrySchedule,
    spec_file::read_spec,
};
use regatta_lab_store::{
    self as store, DeviceRow, RunOutcome, RunRow, Store, change_notifier::ChangeNotifier,
    workspace::Workspace,
};

/// The interval for polling the store without a notification.
const PAUSE: Duration = Duration::from_secs(1);
/// The most runs whose records are written together. They share the flushes of the disk.
const BATCH: usize = 64;
/// The most times that files are requested again because they differ from the signed evidence. A device that then repeats them has signed
/// two different things, and the record has the contradiction.
const MAX_CONTRADICTIONS: u32 = 3;
/// The longest time for which a judged run waits for others.
const BATCH_TIME: Duration = Duration::from_millis(250);

/// Starts the threads that finish small and large runs. They end when the notifier is closed.
///
/// # Errors
/// Returns an error when the store cannot be opened or a thread cannot start.
pub fn start(
    workspace: &Workspace,
    marks: &JudgingMarks,
    notifier: &ChangeNotifier,
) -> anyhow::Result<[JoinHandle<()>; 2]> {
    let store = workspace.store()?;
    marks.retain(|run| !matches!(store.runs().get(run), Ok(None)));
    let start = |lane: JudgingLane| {
        let finisher = Finisher {
            lane,
            workspace: workspace.clone(),
            marks: marks.clone(),
            store: workspace.store()?,
            retries: RetrySchedule::default(),
            contradictions: BTreeMap::new(),
            early_accuracy: EarlyAccuracy::default(),
        };
        let notifier = notifier.clone();
        thread::Builder::new()
            .name(lane.thread_name().to_owned())
            .spawn(move || finisher.run(&notifier))
            .context("cannot start a finisher's thread")
    };
    Ok([start(JudgingLane::Small)?, start(JudgingLane::Large)?])
}

/// Returns whether a run was given up for this reason because its judging ended the process.
pub(super) fn is_set_aside(reason: &str) -> bool {
    reason == end_reason::JUDGING_ENDED
}

/// Returns the record of a run of which nothing but its row is known.
fn unjudged_record(run: &RunRow, device: Option<DeviceRow>) -> Record {
    Record {
        schema: Record::SCHEMA,
        run: run.id,
        device: run.device.clone(),
        device_name: device.map_or_else(String::new, |device| device.name),
        coordinator: concat!("regatta ", env!("CARGO_PKG_VERSION")).to_owned(),
        written: store::now(),
        spec_sha256: run.spec_sha256.clone().unwrap_or_default(),
        evidence_sha256: None,
        evidence_signature_valid: None,
        started: run.started.clone(),
        state: run.state.clone(),
        delivery: DeliveryProof::default(),
        accuracy: None,
        judgement: None,
        not_judged: Vec::new(),
        contradictions: Vec::new(),
        warnings: Vec::new(),
        window: None,
        audit: None,
    }
}

struct Finisher {
    lane: JudgingLane,
    workspace: Workspace,
    store: Store,
    marks: JudgingMarks,
    /// The retries of runs that could not be recorded.
    retries: RetrySchedule<RunId>,
    /// How often each run's files were requested again because they differ from its evidence.
    contradictions: BTreeMap<RunId, u32>,
    early_accuracy: EarlyAccuracy,
}

impl Finisher {
    fn run(mut self, notifier: &ChangeNotifier) {
        let mut heard = notifier.changes();
        while let Some(count) = notifier.wait(heard, PAUSE) {
            heard = count;
            // The daemon stops by itself when the workspace was moved. Until then nothing is written at its former place.
            if self.workspace.expect_in_place().is_err() {
                continue;
            }
            if self.lane == JudgingLane::Small {
                self.look_at_early_accuracy(notifier);
            }
            match self.lane.runs_to_record(&self.store) {
                Ok(runs) => self.finish_due(&runs, notifier),
                Err(error) => tracing::error!("{:#}", anyhow::Error::from(error)),
            }
        }
    }

    fn look_at_early_accuracy(&mut self, notifier: &ChangeNotifier) {
        match self
            .early_accuracy
            .look(&self.workspace, &self.store, &self.marks)
        {
            Ok(true) => notifier.notify(),
            Ok(false) => {}
            Err(error) => tracing::error!("early accuracy: {error:#}"),
        }
    }

    fn finish_due(&mut self, runs: &[RunRow], notifier: &ChangeNotifier) {
        self.retries.retain(|id| runs.iter().any(|run| run.id == *id));
        let mut pending = Vec::new();
        let mut begun = Instant::now();
        for run in runs {
            if notifier.is_closed() {
                break;
            }
            if !self.retries.is_due(&run.id, Instant::now()) {
                continue;
            }
            // An audit is judged by the rows of other runs.
            let needs_rows = run.draft.spec.audit.is_some();
            if needs_rows || pending.len() >= BATCH || begun.elapsed() >= BATCH_TIME {
                self.write(&std::mem::take(&mut pending), notifier);
                begun = Instant::now();
            }
            match self.judge_or_set_aside(run) {
                Ok(judged) => {
                    if judged.is_none() {
                        self.succeeded(run.id, notifier);
                    }
                    pending.extend(judged);
                }
                Err(error) => self.failed(run.id, &error),
            }
        }
        self.write(&pending, notifier);
    }

    fn write(&mut self, pending: &[PendingRecord<'_>], notifier: &ChangeNotifier) {
        let limit = self.workspace.config().quarantine_after;
        let results = write_records(pending, &self.store, limit);
        for (pending, result) in pending.iter().zip(results) {
            match result {
                Ok(()) => self.succeeded(pending.run.id, notifier),
                Err(error) => self.failed(pending.run.id, &error),
            }
        }
    }

    fn succeeded(&mut self, run: RunId, notifier: &ChangeNotifier) {
        self.retries.succeeded(&run);
        notifier.notify();
    }

    fn failed(&mut self, run: RunId, error: &anyhow::Error) {
        let pause = self.retries.failed(run, Instant::now()).as_secs();
        tracing::error!(%run, "cannot record the run, will try again in {pause} s: {error:#}");
    }

    /// Judges a run, unless that has ended the process too often. Such a run is given up, and recorded in the next round.
    fn judge_or_set_aside<'a>(&mut self, run: &'a RunRow) -> anyhow::Result<Option<PendingRecord<'a>>> {
        if let Some(reason) = run.abandoned.as_deref().filter(|why| is_set_aside(why)) {
            return self.record_without_judging(run, reason).map(Some);
        }
        let marks = self.marks.clone();
        if let Some(judged) = marks.judge(run.id, || self.judge(run)) {
            return judged;
        }
        tracing::error!(run = %run.id, "{}: its files are kept", end_reason::JUDGING_ENDED);
        self.store.runs().give_up(run.id, end_reason::JUDGING_ENDED)?;
        marks.end(run.id);
        Ok(None)
    }

    /// Returns the record of a run whose files must not, or cannot, be read.
    fn record_without_judging<'a>(&self, run: &'a RunRow, reason: &str) -> anyhow::Result<PendingRecord<'a>> {
        let dir = self.workspace.run(run.id);
        // Somebody may have deleted it.
        dir.make().context("the run's directory")?;
        let streams = self.store.streams().of_run(run.id)?;
        let device = self.store.devices().get(&run.device)?;
        let record = Record {
            delivery: DeliveryProof {
                bytes: streams.iter().map(|stream| stream.committed).sum(),
                ..DeliveryProof::default()
            },
            not_judged: vec![reason.to_owned()],
            ..unjudged_record(run, device)
        };
        Ok(PendingRecord {
            run,
            dir,
            outcome: RunOutcome::set_aside(&record),
            record,
            device_key: self.store.devices().public_key(&run.device)?,
        })
    }

    /// Returns the record of an ended run, or `None` when files are missing, which the dispatcher then requests again.
    fn judge<'a>(&mut self, run: &'a RunRow) -> anyhow::Result<Option<PendingRecord<'a>>> {
        let dir = self.workspace.run(run.id);
        let streams = self.store.streams().of_run(run.id)?;
        let device = self.store.devices().get(&run.device)?;
        let mut proven =
            evidence::prove(&dir, run, device.as_ref(), &streams).context("the delivered files")?;
        if !run.lost {
            if !run.state.phase.is_final() && !proven.has_end() {
                anyhow::bail!(
                    "its evidence does not contain how it ended, and its device has not reported that yet"
                );
            }
            let missing = Missing::of(&proven, &streams);
            let stays_as_it_is = missing.is_contradiction() && self.count_contradiction(run.id);
            if !(missing.is_nothing() || stays_as_it_is) {
                missing.wait_for(&self.store, &dir, run.id)?;
                return Ok(None);
            }
            self.contradictions.remove(&run.id);
        }
        let state = proven.final_state(run);
        for contradiction in &proven.contradictions {
            tracing::warn!(run = %run.id, "{contradiction}");
        }
        let spec = match read_spec(&dir) {
            Ok(spec_json) => RunSpec::from_json(&spec_json)?,
            // Its device or a user has given it up. Without a record, its device would get no other run.
            Err(error) if run.lost => {
                return self.record_without_judging(run, &format!("{error:#}")).map(Some);
            }
            Err(error) => return Err(error),
        };
        let mut logged = Logged::read(&self.workspace, &spec, &state, &proven);
        let accuracy = self.accuracy(&spec, &dir.files(), &proven).unwrap_or_else(|why| {
            logged.not_judged.push(format!("no accuracy: {why}"));
            None
        });
        for why in &logged.not_judged {
            tracing::warn!(run = %run.id, "{why}");
        }
        let attempt = proven.signed().and_then(|evidence| evidence.attempts.last());
        let window = attempt.map(|attempt| attempt.window.clone());
        let warnings = attempt.map_or_else(Vec::new, |attempt| attempt.warnings.clone());
        let audit = spec.audit.as_ref();
        let audit = audit.map(|of| audit::verify(&self.workspace, &self.store, state.phase, &spec, of));
        let record = Record {
            evidence_sha256: proven.evidence_sha256.clone(),
            evidence_signature_valid: proven.signature_valid,
            state,
            delivery: proven.delivery.clone(),
            judgement: Some(logged.judgement(&spec, &proven, accuracy.as_ref())),
            accuracy,
            not_judged: logged.not_judged,
            contradictions: proven.contradictions.clone(),
            warnings,
            window,
            audit,
            ..unjudged_record(run, device)
        };
        let nothing_to_miss = !run.lost && streams.iter().all(|stream| !stream.listed);
        let outcome = outcome(&spec, &record, &proven, nothing_to_miss);
        Ok(Some(PendingRecord {
            run,
            dir,
            record,
            outcome,
            device_key: self.store.devices().public_key(&run.device)?,
        }))
    }

    /// Counts a contradiction of a run. Returns whether its files were requested again often enough.
    fn count_contradiction(&mut self, run: RunId) -> bool {
        let count = self.contradictions.entry(run).or_default();
        *count += 1;
        *count > MAX_CONTRADICTIONS
    }

    /// Judges accuracy if the run logged all answers.
    ///
    /// # Errors
    /// Returns the reason why accuracy could not be judged.
    fn accuracy(
        &self,
        spec: &RunSpec,
        files: &Path,
        proven: &Proven,
    ) -> Result<Option<AccuracyResult>, NotJudged> {
        if !matches!(spec.mode, Mode::AccuracyOnly | Mode::SubmissionRun) || !spec.engine.kind.computes() {
            return Ok(None);
        }
        if open_log(files, file_name::ACCURACY, proven)?.is_none() {
            return Ok(None);
        }
        let log = files.join(file_name::ACCURACY);
        let scratch = self.workspace.scratch();
        let judged = if spec.benchmark.accuracy.metric == AccuracyMetric::Script {
            // The specification may come from elsewhere. Only the workspace's own file may name a command.
            let catalogue = Catalogue::read(Some(&self.workspace.configs())).map_err(NotJudged::of)?;
            let own = catalogue.benchmark(&spec.benchmark.name).map_err(NotJudged::of)?;
            accuracy::judge_by_script(own, &scratch, &log)
        } else {
            accuracy::judge(&spec.benchmark, None, &scratch, &log)
        };
        judged.map(Some).map_err(NotJudged::of)
    }
}
