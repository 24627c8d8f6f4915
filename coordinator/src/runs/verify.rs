//! Verifying a run long after it ended: the device's signature over the exact evidence, and every file against the hash
//! in it. Works on a run in a workspace and on an exported copy, since both are laid out alike. Judges no figure, and
//! changes nothing.
//!
//! What holds it together: a device's id is the fingerprint of its key, the signature is that key's, the evidence holds the
//! hashes of the spec and of every file. So whatever was changed afterwards is found and named; only who has the device's
//! own private key could make another story of it.

use std::{fs, io, path::Path};

use regatta_rules::{
    DeviceId,
    documents::{Document as _, Evidence, Record},
};

use super::evidence::{EVIDENCE, SIGNATURE, fits};
use crate::{
    hex::{hex, sha256, sha256_of_file},
    keys,
    store::RunRow,
};

const SPEC: &str = "spec.json";
const RECORD: &str = "record.json";
/// The device's public key in an exported run: hexadecimal.
pub(crate) const DEVICE_KEY: &str = "device.pub";

/// What is verified.
pub(crate) struct Subject<'a> {
    /// The run's directory: `spec.json`, `record.json`, `files/`.
    pub(crate) directory: &'a Path,
    /// The device's public key, from wherever it is known.
    pub(crate) public_key: Option<[u8; 32]>,
    /// The run as the store knows it, where there is a store.
    pub(crate) row: Option<&'a RunRow>,
}

/// One thing that is not as it was.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Finding {
    /// Which file.
    pub(crate) file: String,
    /// What is wrong with it.
    pub(crate) problem: String,
}

/// What was found.
#[derive(Debug, Default, serde::Serialize)]
pub(crate) struct Verification {
    /// The run, as its evidence names it.
    pub(crate) run: String,
    /// The device, as its evidence names it.
    pub(crate) device: String,
    /// Files that were hashed.
    pub(crate) files: usize,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// Whether there is evidence at all.
    pub(crate) has_evidence: bool,
    /// What is wrong.
    pub(crate) findings: Vec<Finding>,
}

impl Verification {
    /// Whether everything is as the device left it.
    pub(crate) fn is_intact(&self) -> bool {
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
/// When a file that is there cannot be read. What is missing or changed is an answer, not an error.
pub(crate) fn verify(subject: &Subject<'_>) -> io::Result<Verification> {
    let mut verification = Verification::default();
    let files = subject.directory.join("files");
    let Some(bytes) = optional(&files.join(EVIDENCE))? else {
        check_record(subject, None, &mut verification)?;
        return Ok(verification);
    };
    verification.has_evidence = true;
    check_record(subject, Some(&bytes), &mut verification)?;
    let evidence = match Evidence::from_json(&bytes) {
        Ok(evidence) => evidence,
        Err(error) => {
            verification.find(EVIDENCE, format!("{:#}", anyhow::Error::from(error)));
            return Ok(verification);
        }
    };
    verification.run = evidence.run.to_string();
    verification.device = evidence.device.to_string();
    check_signature(subject, &evidence.device, &bytes, &mut verification)?;
    if let Some(row) = subject.row {
        if evidence.run != row.id || evidence.device != row.device {
            verification.find(
                EVIDENCE,
                format!("it is of run {} on device {}", evidence.run, evidence.device),
            );
        }
        if row.spec_sha256.as_ref() != Some(&evidence.spec_sha256) {
            verification.find(EVIDENCE, "it is of another spec than the one that was sent");
        }
    }
    check_spec(subject.directory, &evidence, &mut verification)?;
    check_files(&files, &evidence, &mut verification)?;
    Ok(verification)
}

fn check_signature(
    subject: &Subject<'_>,
    device: &DeviceId,
    evidence: &[u8],
    verification: &mut Verification,
) -> io::Result<()> {
    let Some(key) = subject.public_key else {
        verification.find(SIGNATURE, "the device's public key is not known here");
        return Ok(());
    };
    if keys::device_id(&key).as_ref() != Some(device) {
        verification.find(
            EVIDENCE,
            format!("it names device {device}, which is not the fingerprint of the known key"),
        );
    }
    match optional(&subject.directory.join("files").join(SIGNATURE))? {
        None => verification.find(SIGNATURE, "missing"),
        Some(signature) if !fits(&key, evidence, &signature) => {
            verification.find(
                EVIDENCE,
                format!("{SIGNATURE} does not fit: one of the two was changed"),
            );
        }
        Some(_) => {}
    }
    Ok(())
}

fn check_spec(directory: &Path, evidence: &Evidence, verification: &mut Verification) -> io::Result<()> {
    match optional(&directory.join(SPEC))? {
        None => verification.find(SPEC, "missing"),
        Some(bytes) if hex(&sha256(&bytes)) != evidence.spec_sha256 => {
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
            Ok((length, _)) if length != proof.bytes => {
                verification.find(
                    name,
                    format!("changed: {length} bytes, the device logged {}", proof.bytes),
                );
            }
            Ok((length, sha256)) if hex(&sha256) != proof.sha256 => {
                verification.find(
                    name,
                    format!("changed: other bytes than the device's, of the same length {length}"),
                );
            }
            Ok((length, _)) => {
                verification.files += 1;
                verification.bytes += length;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => verification.find(name, "missing"),
            Err(error) => return Err(error),
        }
    }
    for entry in fs::read_dir(files)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let is_listed = evidence.files.iter().any(|proof| proof.name.as_str() == name);
        if !is_listed && name != EVIDENCE && name != SIGNATURE {
            verification.find(name, "added: the evidence does not list it");
        }
    }
    Ok(())
}

/// The coordinator's record: it holds the evidence's hash, and what the store knows too.
fn check_record(
    subject: &Subject<'_>,
    evidence: Option<&[u8]>,
    verification: &mut Verification,
) -> io::Result<()> {
    let Some(bytes) = optional(&subject.directory.join(RECORD))? else {
        verification.find(RECORD, "missing");
        return Ok(());
    };
    let record = match Record::from_json(&bytes) {
        Ok(record) => record,
        Err(error) => {
            verification.find(RECORD, format!("{:#}", anyhow::Error::from(error)));
            return Ok(());
        }
    };
    match (evidence.map(|bytes| hex(&sha256(bytes))), &record.evidence_sha256) {
        (Some(found), Some(recorded)) if found != *recorded => {
            verification.find(EVIDENCE, "changed: its SHA-256 is not the one in record.json");
        }
        (None, Some(_)) => verification.find(EVIDENCE, "missing"),
        _ => {}
    }
    if let Some(row) = subject.row {
        let outcome = row.outcome.as_ref();
        let is_the_stores = record.run == row.id
            && record.device == row.device
            && row.recorded.as_ref() == Some(&record.written)
            && outcome.is_none_or(|outcome| {
                outcome.accuracy == record.accuracy
                    && outcome.complete == record.delivery.complete
                    && outcome.signed == record.evidence_signature_valid
            });
        if !is_the_stores {
            verification.find(RECORD, "changed: the store remembers another record of this run");
        }
    }
    Ok(())
}

/// The public key that lies beside an exported run.
///
/// # Errors
/// When it is there and cannot be read.
pub(crate) fn exported_key(directory: &Path) -> io::Result<Option<[u8; 32]>> {
    let text = optional(&directory.join(DEVICE_KEY))?;
    Ok(text.and_then(|text| crate::hex::unhex(&text)?.try_into().ok()))
}

fn optional(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
