//! Verifies a run long after it ended: the device's signature over the exact evidence, and each file's hash in it. It works on a run of a
//! workspace and on an exported copy, which have the same layout. It compares the verdict and figures in the record with the logs. It changes
//! nothing.
//!
//! A device's id is the fingerprint of its key, and that key signs the evidence. The evidence has the hashes of the spec and of every
//! file. A later change is therefore found and named. Only the holder of the device's private key could forge a consistent run.

use std::{fs, io, path::Path};

use regatta_fsutil::{
    hash::{FileHash, sha256_hex, sha256_of_file},
    regular_file::{self, MAX_DOCUMENT},
};
use regatta_submission_stage::proof::{PublicKey, signature_fits};
use regatta_types::{
    DeviceId,
    documents::{
        Document as _, Evidence, Record, RunSpec,
        document_name::{EVIDENCE, EVIDENCE_SIGNATURE, RECORD, SPEC},
    },
};

use super::{export_manifest, judgement_check};
use regatta_lab_store::RunRow;

/// The run to verify.
pub struct Subject<'a> {
    /// The run's directory: `spec.json`, `record.json`, `files/`.
    pub directory: &'a Path,
    /// The device's public key, from any source.
    pub public_key: Option<PublicKey>,
    /// The run's row, if there is a store.
    pub row: Option<&'a RunRow>,
    /// The device that must have signed the run, if the user names one.
    pub device: Option<&'a DeviceId>,
}

/// A difference between a file and its verified state.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    pub file: String,
    pub problem: String,
}

/// The result of a verification.
#[derive(Debug, Default, serde::Serialize)]
pub struct Verification {
    /// The run, as its evidence names it.
    pub run: String,
    /// The device, as its evidence names it.
    pub device: String,
    /// The number of hashed files.
    pub files: usize,
    /// The number of hashed bytes.
    pub bytes: u64,
    /// Whether the run has evidence.
    pub has_evidence: bool,
    /// The files that the device did not sign. They are compared with its evidence, and in an export with the manifest.
    pub unsigned: Vec<String>,
    pub findings: Vec<Finding>,
}

impl Verification {
    /// Returns whether the run has evidence and nothing differs from it.
    pub fn is_intact(&self) -> bool {
        self.has_evidence && self.findings.is_empty()
    }

    fn find(&mut self, file: impl Into<String>, problem: impl Into<String>) {
        self.findings.push(Finding {
            file: file.into(),
            problem: problem.into(),
        });
    }
}

/// Verifies a run.
///
/// # Errors
/// Returns an error when an existing file cannot be read. A missing or changed file is a `Finding`.
pub fn verify(subject: &Subject<'_>) -> io::Result<Verification> {
    let mut verification = Verification::default();
    let files = subject.directory.join("files");
    let record = read_record(subject, &mut verification)?;
    if subject.row.is_none() {
        export_manifest::check(subject.directory, &mut |file, problem| {
            verification.find(file, problem)
        })?;
    }
    let Some(bytes) = optional(&files.join(EVIDENCE))? else {
        if record.is_some_and(|record| record.evidence_sha256.is_some()) {
            verification.find(EVIDENCE, "missing");
        }
        return Ok(verification);
    };
    verification.has_evidence = true;
    let evidence = match Evidence::from_json(&bytes) {
        Ok(evidence) => evidence,
        Err(error) => {
            verification.find(EVIDENCE, format!("{:#}", anyhow::Error::from(error)));
            return Ok(verification);
        }
    };
    if let Some(record) = &record {
        check_record(record, &evidence, &sha256_hex(&bytes), &mut verification);
    }
    verification.run = evidence.run.to_string();
    verification.device = evidence.device.to_string();
    check_signature(subject, &evidence.device, &bytes, &mut verification)?;
    if let Some(device) = subject.device.filter(|device| **device != evidence.device) {
        let signer = &evidence.device;
        verification.find(
            EVIDENCE,
            format!("it is signed by device {signer}, not by {device}"),
        );
    }
    if let Some(row) = subject.row {
        if evidence.run != row.id || evidence.device != row.device {
            verification.find(
                EVIDENCE,
                format!("it is of run {} on device {}", evidence.run, evidence.device),
            );
        }
        if row.spec_sha256.as_ref() != Some(&evidence.spec_sha256) {
            verification.find(EVIDENCE, "it belongs to another spec than the one that was sent");
        }
    }
    let before = verification.findings.len();
    check_spec(subject.directory, &evidence, &mut verification)?;
    check_files(&files, &evidence, &mut verification)?;
    // Logs that are not the device's say nothing about the judgement.
    if verification.findings.len() == before
        && let Some(judgement) = record.and_then(|record| record.judgement)
        && let Some(spec) = optional(&subject.directory.join(SPEC))?
        && let Ok(spec) = RunSpec::from_json(&spec)
    {
        for problem in judgement_check::differences(&judgement, &spec, &evidence, &files)? {
            verification.find(RECORD, problem);
        }
    }
    Ok(verification)
}

fn check_signature(
    subject: &Subject<'_>,
    device: &DeviceId,
    evidence: &[u8],
    verification: &mut Verification,
) -> io::Result<()> {
    let Some(key) = subject.public_key else {
        verification.find(EVIDENCE_SIGNATURE, "the device's public key is not known here");
        return Ok(());
    };
    if DeviceId::of_public_key(&key) != *device {
        verification.find(
            EVIDENCE,
            format!("it names device {device}, which is not the fingerprint of the known key"),
        );
    }
    match optional(&subject.directory.join("files").join(EVIDENCE_SIGNATURE))? {
        None => verification.find(EVIDENCE_SIGNATURE, "missing"),
        Some(signature) if !signature_fits(&key, evidence, &signature) => {
            verification.find(
                EVIDENCE,
                format!("{EVIDENCE_SIGNATURE} does not match: one of the two was changed"),
            );
        }
        Some(_) => {}
    }
    Ok(())
}

fn check_spec(directory: &Path, evidence: &Evidence, verification: &mut Verification) -> io::Result<()> {
    match optional(&directory.join(SPEC))? {
        None => verification.find(SPEC, "missing"),
        Some(bytes) if sha256_hex(&bytes) != evidence.spec_sha256 => {
            verification.find(SPEC, "changed: its SHA-256 is not the one in the evidence");
        }
        Some(_) => {}
    }
    Ok(())
}

fn check_files(files: &Path, evidence: &Evidence, verification: &mut Verification) -> io::Result<()> {
    for proof in &evidence.files {
        let name = proof.name.as_str();
        match sha256_of_file(&files.join(name)) {
            Ok(FileHash { length, .. }) if length != proof.bytes => {
                verification.find(
                    name,
                    format!("changed: {length} bytes, the device logged {}", proof.bytes),
                );
            }
            Ok(hash) if hash.hex() != proof.sha256 => {
                let length = hash.length;
                verification.find(
                    name,
                    format!("changed: same length {length}, but not the bytes that the device delivered"),
                );
            }
            Ok(hash) => {
                verification.files += 1;
                verification.bytes += hash.length;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => verification.find(name, "missing"),
            Err(error) => return Err(error),
        }
    }
    for entry in fs::read_dir(files)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let is_listed = evidence.files.iter().any(|proof| proof.name.as_str() == name);
        if !is_listed && name != EVIDENCE && name != EVIDENCE_SIGNATURE {
            verification.find(name, "added: the evidence does not list it");
        }
    }
    Ok(())
}

/// Reads the coordinator's record, and compares it with the store if there is one.
fn read_record(subject: &Subject<'_>, verification: &mut Verification) -> io::Result<Option<Record>> {
    let Some(bytes) = optional(&subject.directory.join(RECORD))? else {
        verification.find(RECORD, "missing");
        return Ok(None);
    };
    verification.unsigned.push(RECORD.to_owned());
    let record = match Record::from_json(&bytes) {
        Ok(record) => record,
        Err(error) => {
            verification.find(RECORD, format!("{:#}", anyhow::Error::from(error)));
            return Ok(None);
        }
    };
    if subject.row.is_some_and(|row| !is_of_row(&record, row)) {
        verification.find(RECORD, "changed: the store remembers another record of this run");
    }
    Ok(Some(record))
}

fn is_of_row(record: &Record, row: &RunRow) -> bool {
    record.run == row.id
        && record.device == row.device
        && row.recorded.as_ref() == Some(&record.written)
        && row.outcome.as_ref().is_none_or(|outcome| {
            outcome.accuracy == record.accuracy
                && record
                    .judgement
                    .as_ref()
                    .is_none_or(|judgement| outcome.judgement == *judgement)
                && outcome.complete == record.delivery.complete
                && outcome.signed == record.evidence_signature_valid
        })
}

/// Compares the record with the device's evidence.
fn check_record(record: &Record, evidence: &Evidence, sha256: &str, verification: &mut Verification) {
    match &record.evidence_sha256 {
        Some(recorded) if recorded != sha256 => {
            verification.find(EVIDENCE, "changed: its SHA-256 is not the one in record.json");
        }
        Some(_) => {}
        None => verification.find(RECORD, "it was written without the evidence"),
    }
    if record.run != evidence.run || record.device != evidence.device {
        let (run, device) = (record.run, &record.device);
        verification.find(RECORD, format!("it is of run {run} on device {device}"));
    }
    if record.spec_sha256 != evidence.spec_sha256 {
        verification.find(RECORD, "it is of another spec than the evidence");
    }
    if record.evidence_signature_valid != Some(true) {
        verification.find(RECORD, "it does not state that the evidence is signed");
    }
    let phase = record.state.phase;
    if evidence.final_phase() != Some(phase) {
        let signed = evidence.outcome.phase;
        verification.find(
            RECORD,
            format!("it calls the run {phase}, the evidence was sealed as {signed}"),
        );
    }
    for proof in &evidence.files {
        let delivered = record
            .delivery
            .streams
            .iter()
            .find(|stream| stream.name == proof.name);
        let is_delivered = delivered.is_some_and(|stream| stream.sha256.as_ref() == Some(&proof.sha256));
        if record.delivery.complete && !is_delivered {
            verification.find(
                RECORD,
                format!(
                    "it calls the delivery complete without the evidence's {}",
                    proof.name
                ),
            );
        }
    }
}

fn optional(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match regular_file::read(path, MAX_DOCUMENT) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
