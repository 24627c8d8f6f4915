//! The end of a run: once nothing more will come of it, hold its files against the evidence, judge accuracy and audits,
//! write `record.json`, and tell the store. What to do is asked of the store, so that a coordinator that was killed in the
//! middle does it again.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::BufReader,
    path::Path,
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::Context as _;
use regatta_mllog::read::{file_name, summary_file};
use regatta_rules::{
    Mode, RunId,
    documents::{AccuracyResult, Document as _, Record, RunSpec},
};

use super::{Outcome, accuracy, audit, evidence, figures};
use crate::{
    daemon::Bell,
    store::{self, RunRow, Store},
    workspace::{Workspace, write_durably},
};

/// How often the store is asked without a ring.
const PAUSE: Duration = Duration::from_secs(1);

/// Starts the finisher. It ends when the bell is taken down.
///
/// # Errors
/// When the store cannot be opened or the thread not started.
pub(crate) fn start(workspace: &Workspace, bell: Bell) -> anyhow::Result<JoinHandle<()>> {
    let finisher = Finisher {
        workspace: workspace.clone(),
        store: Store::open(&workspace.database())?,
        complained: BTreeSet::new(),
    };
    thread::Builder::new()
        .name("finish".to_owned())
        .spawn(move || finisher.run(&bell))
        .context("cannot start the finisher's thread")
}

struct Finisher {
    workspace: Workspace,
    store: Store,
    /// Runs whose record could not be written: said once, tried again.
    complained: BTreeSet<RunId>,
}

impl Finisher {
    fn run(mut self, bell: &Bell) {
        let mut heard = bell.count();
        while let Some(count) = bell.wait(heard, PAUSE) {
            heard = count;
            match self.store.runs_to_record() {
                Ok(runs) => runs.iter().for_each(|run| self.finish(run, bell)),
                Err(error) => tracing::error!("{:#}", anyhow::Error::from(error)),
            }
        }
    }

    fn finish(&mut self, run: &RunRow, bell: &Bell) {
        match self.record(run) {
            Ok(()) => {
                self.complained.remove(&run.id);
                bell.ring();
            }
            Err(error) => {
                if self.complained.insert(run.id) {
                    tracing::error!(run = %run.id, "cannot record the run, will try again: {error:#}");
                }
            }
        }
    }

    fn record(&self, run: &RunRow) -> anyhow::Result<()> {
        let dir = self.workspace.run(run.id);
        let streams = self.store.streams(run.id)?;
        let device = self.store.device(&run.device)?;
        let proven = evidence::prove(&dir, run, device.as_ref(), &streams).context("the delivered files")?;
        for contradiction in &proven.contradictions {
            tracing::warn!(run = %run.id, "{contradiction}");
        }
        let spec = RunSpec::from_json(&fs::read(dir.spec()).context("the run's spec")?)?;
        let summary_path = dir.files().join(file_name::SUMMARY);
        let summary = summary_path
            .exists()
            .then(|| summary_file(&summary_path))
            .transpose();
        let summary = summary.unwrap_or_else(|error| {
            tracing::warn!(run = %run.id, "{:#}", anyhow::Error::from(error));
            None
        });
        let figures = figures::figures(&spec, summary.as_ref(), proven.evidence.as_ref());
        let samples = File::open(dir.files().join(file_name::DETAIL)).ok();
        let samples = samples.and_then(|detail| figures::samples(BufReader::new(detail)));
        let attempts = proven.evidence.iter().flat_map(|evidence| &evidence.attempts);
        let window = attempts.last().map(|attempt| attempt.window.clone());
        let accuracy = self.accuracy(run.id, &spec, &dir.files());
        let audit = spec.audit.as_ref();
        let audit = audit.map(|of| audit::verify(&self.workspace, &self.store, run, &spec, of));
        let written = store::now();
        let record = Record {
            schema: Record::SCHEMA,
            run: run.id,
            device: run.device.clone(),
            device_name: device.map_or_else(String::new, |device| device.name),
            coordinator: concat!("regatta ", env!("CARGO_PKG_VERSION")).to_owned(),
            written: written.clone(),
            spec_sha256: run.spec_sha256.clone().unwrap_or_default(),
            evidence_sha256: proven.evidence_sha256,
            evidence_signature_valid: proven.signature_valid,
            state: run.state.clone(),
            delivery: proven.delivery,
            accuracy: accuracy.clone(),
            window: window.clone(),
            audit: audit.clone(),
        };
        let mut text = serde_json::to_vec_pretty(&record)?;
        text.push(b'\n');
        write_durably(&dir.record(), &text).context("record.json")?;
        let nothing_to_miss = !run.lost && streams.iter().all(|stream| !stream.listed);
        let mut not_a_measurement = proven
            .evidence
            .as_ref()
            .map(|evidence| evidence.not_a_measurement.clone())
            .unwrap_or_default();
        let evidence = proven.evidence.as_ref();
        not_a_measurement.extend(evidence.and_then(|evidence| evidence.unproven_state(spec.state.as_ref())));
        let outcome = Outcome {
            valid: figures.valid,
            reasons: figures.reasons,
            metric: figures.metric,
            samples: samples.or(accuracy.as_ref().map(|accuracy| accuracy.total)),
            accuracy,
            bytes: record.delivery.bytes,
            complete: record.delivery.complete,
            signed: record.evidence_signature_valid,
            not_a_measurement,
            device_state: proven.evidence.and_then(|evidence| evidence.state),
            forgettable: record.delivery.complete || nothing_to_miss,
            rates: figures.rates,
            window,
            audit,
        };
        self.store.run_is_recorded(run.id, &written, &outcome)?;
        // Stays where a stream is still on its way.
        let _ = fs::remove_dir(dir.partial());
        tracing::info!(run = %run.id, phase = %run.state.phase, complete = outcome.complete, "recorded");
        Ok(())
    }

    /// Accuracy is judged where all answers were logged. Why it could not be is logged, and does not hold up the record.
    fn accuracy(&self, run: RunId, spec: &RunSpec, files: &Path) -> Option<AccuracyResult> {
        let log = files.join(file_name::ACCURACY);
        if !matches!(spec.mode, Mode::AccuracyOnly | Mode::SubmissionRun)
            || !log.exists()
            || !spec.engine.kind.computes()
        {
            return None;
        }
        accuracy::judge(&spec.benchmark, None, &self.workspace.scratch(), &log)
            .map_err(|error| tracing::warn!(%run, "no accuracy: {:#}", anyhow::Error::from(error)))
            .ok()
    }
}
