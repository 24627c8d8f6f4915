//! A finished run from the coordinator's disk or from `regatta runs export`: `spec.json`, `record.json` and `files/`.
//!
//! Reports what is not proven about it, and why it can never be submitted.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use regatta_catalogue::round::Round;
use regatta_fsutil::{hash::sha256_hex, regular_file::MAX_DOCUMENT};
use regatta_types::{
    DeviceId, Mode, RunId,
    documents::{
        Attempt, Document, Evidence, FileProof, LoadgenIdentity, Record, RunPhase, RunSpec, document_name,
    },
};

use super::StageError;
use crate::proof::{ProofError, PublicKey, SignedEvidence};
use regatta_submission_check::files::read_small;

/// The name of the MLCommons LoadGen in evidence.
const OFFICIAL_LOADGEN: &str = "mlcommons-loadgen";

/// A finished run and its documents.
#[derive(Debug, Clone)]
pub(super) struct Run {
    /// The run's directory.
    pub(super) directory: PathBuf,
    /// The requested run.
    pub(super) spec: RunSpec,
    /// The coordinator's record.
    pub(super) record: Record,
    /// The device's signed evidence.
    pub(super) evidence: Evidence,
    /// Contradictions between the three documents.
    contradictions: Vec<String>,
}

impl Run {
    /// Reads a run's documents and verifies the device's signature. `keys` take precedence over the key in the run's directory.
    pub(super) fn read(directory: &Path, keys: &BTreeMap<DeviceId, PublicKey>) -> Result<Self, StageError> {
        let (spec, spec_sha256) = document::<RunSpec>(&directory.join(document_name::SPEC))?;
        let (record, _) = document::<Record>(&directory.join(document_name::RECORD))?;
        let path = directory.join("files").join(document_name::EVIDENCE);
        let (evidence, evidence_sha256) = document::<Evidence>(&path)?;
        let mut contradictions = Vec::new();
        if record.run != spec.run || evidence.run != spec.run {
            contradictions.push("its documents are of different runs".to_owned());
        }
        if record.device != spec.device || evidence.device != spec.device {
            contradictions.push("its documents are of different devices".to_owned());
        }
        match SignedEvidence::read(directory, keys.get(&evidence.device)) {
            Ok(signed) if signed.sha256 == evidence_sha256 => {}
            Ok(_) => contradictions.push("its evidence changed while it was read".to_owned()),
            Err(ProofError::File(error)) => return Err(error.into()),
            Err(unproven) => contradictions.push(unproven.to_string()),
        }
        if record.spec_sha256 != spec_sha256 || evidence.spec_sha256 != spec_sha256 {
            contradictions.push("spec.json is not the one that was run".to_owned());
        }
        if record
            .evidence_sha256
            .as_ref()
            .is_some_and(|known| *known != evidence_sha256)
        {
            contradictions.push("evidence.json is not the one that was recorded".to_owned());
        }
        Ok(Self {
            directory: directory.to_owned(),
            spec,
            record,
            evidence,
            contradictions,
        })
    }

    /// Returns the run's id.
    pub(super) const fn id(&self) -> RunId {
        self.spec.run
    }

    /// Returns the run's name for messages.
    pub(super) fn called(&self) -> String {
        let spec = &self.spec;
        format!(
            "run {} ({}, {}, {})",
            spec.run, spec.benchmark.name, spec.scenario, spec.mode
        )
    }

    /// Returns the last attempt of the run process, which is the one that counts.
    pub(super) fn attempt(&self) -> Option<&Attempt> {
        self.evidence.attempts.last()
    }

    /// Returns the LoadGen that ran.
    pub(super) fn loadgen(&self) -> Option<&LoadgenIdentity> {
        self.attempt()?.loadgen.as_ref()
    }

    /// Returns the proof of one of the run's files.
    pub(super) fn proof(&self, name: &str) -> Option<&FileProof> {
        self.evidence.file(name)
    }

    /// Returns the path of one of the run's files.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.directory.join("files").join(name)
    }

    /// Returns whether the run measures `mode` for the submission and not for an audit.
    pub(super) fn is_of(&self, mode: Mode) -> bool {
        self.spec.mode == mode && self.spec.conf.audit_config.is_none()
    }

    /// Returns the reason why the run cannot be used for a result: it did not end well, or it is not proven.
    pub(super) fn faults(&self) -> Vec<String> {
        let mut faults = self.contradictions.clone();
        let recorded = self.record.state.phase;
        if recorded != RunPhase::Done {
            faults.push(format!("it is {recorded}, not done"));
        } else if self.evidence.final_phase() != Some(RunPhase::Done) {
            let signed = self.evidence.outcome.phase;
            faults.push(format!(
                "its evidence was sealed as {signed}, its record calls it {recorded}"
            ));
        }
        if !self.record.delivery.complete {
            faults.push("its files are not all here".to_owned());
        }
        if self.record.evidence_signature_valid != Some(true) {
            faults.push("its record does not say that the evidence is signed by the device".to_owned());
        }
        match self.attempt().and_then(|attempt| attempt.valid) {
            Some(true) => {}
            // The official LoadGen gives no verdict on accuracy runs.
            None if self.spec.mode == Mode::AccuracyOnly => {}
            None => faults.push("LoadGen gave no verdict".to_owned()),
            Some(false) => {
                let reasons = self.attempt().map(|attempt| attempt.invalid_reasons.join("; "));
                let reasons = reasons.filter(|reasons| !reasons.is_empty());
                let why = reasons.map_or_else(String::new, |reasons| format!(" ({reasons})"));
                faults.push(format!("LoadGen calls it INVALID{why}"));
            }
        }
        faults
    }

    /// Returns the reason why the run can never be submitted to a round, in any division.
    ///
    /// Reasons come from the device's statement, and from the documents even if the device states none.
    pub(super) fn not_submittable(&self, round: &Round) -> Vec<String> {
        let mut reasons = self.evidence.not_a_measurement.clone();
        if reasons.is_empty() {
            reasons = self.spec.not_a_measurement();
        }
        let mut also = |reason: String| {
            // The device's reasons come first. Repeating the same reason would add nothing.
            if reasons.is_empty() {
                reasons.push(reason);
            }
        };
        if let Some(why) = self.evidence.unproven_state(self.spec.state.as_ref()) {
            also(why);
        }
        match self.loadgen() {
            None => also("the evidence does not say which LoadGen ran".to_owned()),
            Some(loadgen) if loadgen.implementation != OFFICIAL_LOADGEN => {
                also(format!("run by {}", loadgen.implementation));
            }
            Some(loadgen) if !round.accepts_loadgen(&loadgen.revision) => also(format!(
                "round {} does not accept LoadGen {} of revision {}",
                round.name, loadgen.version, loadgen.revision
            )),
            Some(_) => {}
        }
        reasons
    }
}

fn document<T: Document>(path: &Path) -> Result<(T, String), StageError> {
    let bytes = read_small(path, MAX_DOCUMENT)?;
    let read = T::from_json(&bytes).map_err(|source| StageError::Document {
        path: path.to_owned(),
        source,
    })?;
    Ok((read, sha256_hex(&bytes)))
}
