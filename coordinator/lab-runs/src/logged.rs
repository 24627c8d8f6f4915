//! Reads a run's delivered logs, and judges them for the record and the store. It reads only logs that the signed evidence lists. It does
//! not judge accuracy, which needs labels.

use std::{
    fs::File,
    io::{self, BufReader},
    path::Path,
};

use regatta_catalogue::catalogue::RoundCatalogue;
use regatta_fsutil::regular_file;
use regatta_mllog::read::{Summary, file_name};
use regatta_text::ErrorChain;
use regatta_types::documents::{
    AccuracyResult, Attempt, Evidence, Judgement, Record, RunPhase, RunSpec, RunState, RunTiming,
};

use super::{
    detail_figures::{DetailFigures, judged_key},
    evidence::Proven,
    figures,
    figures::Figures,
};
use regatta_lab_store::{RunOutcome, workspace::Workspace};

/// The content of a run's logs.
pub(super) struct Logged {
    figures: Figures,
    detail: DetailFigures,
    /// The parts that could not be judged, with reasons.
    pub(super) not_judged: Vec<String>,
}

impl Logged {
    /// Reads the logs. A log that cannot be read does not affect the others.
    pub(super) fn read(workspace: &Workspace, spec: &RunSpec, state: &RunState, proven: &Proven) -> Self {
        let files = &workspace.run(spec.run).files();
        let mut not_judged = Vec::new();
        let summary = summary(files, proven).unwrap_or_else(|why| {
            not_judged.push(format!("no result: {why}"));
            None
        });
        let detail = open_log(files, file_name::DETAIL, proven).unwrap_or_else(|why| {
            not_judged.push(format!("no number of samples: {why}"));
            None
        });
        let detail = detail.map(BufReader::new).map(|detail| {
            let rounds = RoundCatalogue::read(Some(&workspace.configs()));
            let round = rounds.and_then(|rounds| rounds.named(Some(&spec.round)).cloned());
            let round = round
                .inspect_err(|error| not_judged.push(format!("no judged figure: {error}")))
                .ok();
            DetailFigures::read(detail, round.as_ref().and_then(|round| judged_key(round, spec)))
        });
        let figures = figures::figures(spec, summary.as_ref(), proven.signed());
        let has_verdict = spec.task.is_measurement() && spec.mode.has_verdict();
        if state.phase == RunPhase::Done && has_verdict && figures.valid.is_none() {
            not_judged.push("LoadGen gave no verdict".to_owned());
        }
        Self {
            figures,
            detail: detail.unwrap_or_default(),
            not_judged,
        }
    }

    /// Returns the judgement of a run with this accuracy, for its record.
    pub(super) fn judgement(
        &self,
        spec: &RunSpec,
        proven: &Proven,
        accuracy: Option<&AccuracyResult>,
    ) -> Judgement {
        let samples = self.detail.samples;
        Judgement {
            valid: self.figures.valid,
            reasons: self.figures.reasons.clone(),
            metric: self.figures.metric.clone(),
            figure: self.detail.judged.clone(),
            samples: samples.or(accuracy.map(|accuracy| accuracy.total)),
            rates: self.figures.rates.clone(),
            timing: timing(proven.signed()),
            not_a_measurement: not_a_measurement(spec, proven.signed()),
        }
    }
}

/// Builds the outcome of a run with this record. `nothing_to_miss` is true when the device never had any file of the run.
pub(super) fn outcome(spec: &RunSpec, record: &Record, proven: &Proven, nothing_to_miss: bool) -> RunOutcome {
    RunOutcome {
        judgement: record.judgement.clone().unwrap_or_default(),
        accuracy: record.accuracy.clone(),
        not_judged: record.not_judged.clone(),
        contradictions: record.contradictions.clone(),
        warnings: record.warnings.clone(),
        bytes: record.delivery.bytes,
        complete: record.delivery.complete,
        signed: record.evidence_signature_valid,
        loaded_engine: loaded_engine(spec, proven.signed()),
        device_state: proven.signed().and_then(|evidence| evidence.state.clone()),
        forgettable: (record.delivery.complete && record.evidence_signature_valid == Some(true))
            || nothing_to_miss,
        window: record.window.clone(),
        audit: record.audit.clone(),
    }
}

/// Returns the loaded engine in the words of the last attempt. An attempt that ended before has only the engine's kind.
fn loaded_engine(spec: &RunSpec, evidence: Option<&Evidence>) -> Option<String> {
    let attempt = evidence?.attempts.last()?;
    (attempt.engine != spec.engine.kind.as_str()).then(|| attempt.engine.clone())
}

/// Returns the time and duration of LoadGen's run, from the last attempt. A reboot in between leaves no duration.
fn timing(evidence: Option<&Evidence>) -> Option<RunTiming> {
    let Attempt { started, ended, .. } = evidence?.attempts.last()?;
    let started = started.as_ref()?;
    let ended = ended.as_ref().filter(|ended| ended.boot_id == started.boot_id);
    Some(RunTiming {
        started: started.utc.clone(),
        synchronised: started.synchronised,
        duration_ns: ended.and_then(|ended| ended.monotonic_ns.checked_sub(started.monotonic_ns)),
    })
}

/// Returns the reasons of the device, or of a missing proof, why this is not a valid measurement.
fn not_a_measurement(spec: &RunSpec, evidence: Option<&Evidence>) -> Vec<String> {
    let Some(evidence) = evidence else {
        return Vec::new();
    };
    let mut reasons = evidence.not_a_measurement.clone();
    reasons.extend(evidence.unproven_state(spec.state.as_ref()));
    reasons
}

/// Returns LoadGen's summary, if the run left one.
fn summary(files: &Path, proven: &Proven) -> Result<Option<Summary>, NotJudged> {
    let Some(file) = open_log(files, file_name::SUMMARY, proven)? else {
        return Ok(None);
    };
    let read = Summary::read(BufReader::new(file));
    read.map(Some)
        .map_err(|error| NotJudged(format!("{}: {}", file_name::SUMMARY, NotJudged::of(error))))
}

/// Opens a log that the signed evidence lists. Returns `None` if the run left none, for example after an early failure.
pub(super) fn open_log(files: &Path, name: &str, proven: &Proven) -> Result<Option<File>, NotJudged> {
    match regular_file::open(&files.join(name)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(NotJudged(format!("{name}: {error}"))),
        Ok(file) => match proven.file(name) {
            Ok(()) => Ok(Some(file)),
            Err(why) => Err(NotJudged(format!("{name}: {why}"))),
        },
    }
}

/// Why a part of a run is not judged, as the run's record has it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct NotJudged(String);

impl NotJudged {
    /// Returns the reason that an error is, with the errors behind it.
    pub(super) fn of(error: impl std::error::Error + 'static) -> Self {
        Self(ErrorChain(&error).to_string())
    }
}
