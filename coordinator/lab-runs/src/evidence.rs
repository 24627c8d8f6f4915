//! Compares a delivered run with its evidence: the signature, the hash of every file, and the final state. It judges no figures.

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, io, path::Path};

use regatta_fsutil::{
    hash::{sha256_hex, sha256_of_file},
    regular_file::{self, MAX_DOCUMENT},
};
use regatta_submission_stage::proof::signature_fits;
use regatta_text::ErrorChain;
use regatta_types::{
    DeviceId, RunId, StreamName,
    documents::{
        DeliveryProof, Document as _, DocumentError, Evidence, RunPhase, RunState, StreamProof,
        document_name::{EVIDENCE, EVIDENCE_SIGNATURE},
    },
};
use rustix::io::Errno;

use super::ingest::STREAMS_PER_RUN;
use regatta_lab_store::{DeviceRow, RunRow, StreamRow, workspace::RunDir};

/// The result of comparing a run with its evidence.
#[derive(Debug)]
pub(super) struct Proven {
    /// The evidence, if it is present, can be parsed and belongs to this run.
    pub(super) evidence: Option<Evidence>,
    /// SHA-256 of the evidence's exact bytes.
    pub(super) evidence_sha256: Option<String>,
    /// Whether the signature matches the device's key. `None` while either is missing.
    pub(super) signature_valid: Option<bool>,
    /// The delivered files, compared with the evidence.
    pub(super) delivery: DeliveryProof,
    /// The contradictions, as text.
    pub(super) contradictions: Vec<String>,
    /// The reason why the run fails regardless of the reported state: a document exceeds the size limit, or lists too many files.
    oversized: Option<String>,
    /// Length and SHA-256 of each complete stream on disk.
    on_disk: BTreeMap<StreamName, (u64, String)>,
}

/// The reason why the evidence does not prove a file on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum UnprovenFile {
    #[error("there is no signed evidence of it")]
    NoEvidence,
    #[error("the signed evidence does not list it")]
    Unlisted,
    #[error("it is not the file that the signed evidence lists")]
    Different,
}

/// The reason why evidence does not belong to a run.
#[derive(Debug, thiserror::Error)]
enum ForeignEvidence {
    #[error("{EVIDENCE}")]
    Unreadable(#[source] DocumentError),
    #[error("{EVIDENCE} is of run {0}")]
    Run(RunId),
    #[error("{EVIDENCE} is of device {0}")]
    Device(DeviceId),
    #[error("{EVIDENCE} is of another spec than the one that was sent")]
    Spec,
}

impl Proven {
    /// Returns the evidence, if the device signed it. Anyone who reaches the broker can send unsigned evidence.
    pub(super) fn signed(&self) -> Option<&Evidence> {
        self.evidence
            .as_ref()
            .filter(|_| self.signature_valid == Some(true))
    }

    /// Checks a file on disk against the signed evidence.
    pub(super) fn file(&self, name: &str) -> Result<(), UnprovenFile> {
        let evidence = self.signed().ok_or(UnprovenFile::NoEvidence)?;
        let listed = evidence.file(name).ok_or(UnprovenFile::Unlisted)?;
        match self.on_disk.get(&listed.name) {
            Some((length, sha256)) if *length == listed.bytes && *sha256 == listed.sha256 => Ok(()),
            _ => Err(UnprovenFile::Different),
        }
    }

    /// Returns the run's final state. The signed state wins over the reported one, because the broker may not be trusted. A lost run stays
    /// failed, and an oversized document fails the run.
    pub(super) fn final_state(&mut self, run: &RunRow) -> RunState {
        let reported = &run.state;
        if let Some(reason) = &self.oversized {
            return RunState {
                phase: RunPhase::Failed,
                reason: Some(reason.clone()),
                revision: reported.revision,
            };
        }
        let Some(evidence) = self.signed().filter(|_| !run.lost) else {
            return reported.clone();
        };
        let Some(phase) = evidence.final_phase() else {
            let phase = evidence.outcome.phase;
            self.contradictions
                .push(format!("{EVIDENCE} was sealed while the run was {phase}"));
            return reported.clone();
        };
        if phase == reported.phase {
            return reported.clone();
        }
        let signed = RunState {
            phase,
            reason: evidence.outcome.reason.clone(),
            revision: reported.revision,
        };
        // The state of a run that has ended may still be on its way.
        if reported.phase.is_final() {
            self.contradictions.push(format!(
                "the run was reported as {}, and {EVIDENCE} has {phase}",
                reported.phase
            ));
        }
        signed
    }

    /// Returns whether signed evidence says how the run ended, so that no reported state is needed.
    pub(super) fn has_end(&self) -> bool {
        self.signed()
            .is_some_and(|evidence| evidence.final_phase().is_some())
    }
}

/// Compares a run's files with its evidence. A file whose bytes the disk has lost counts as missing.
///
/// # Errors
/// Returns an error when a file cannot be read for a reason unrelated to its bytes, such as too many open files. A contradiction is part
/// of the result.
pub(super) fn prove(
    dir: &RunDir,
    run: &RunRow,
    device: Option<&DeviceRow>,
    streams: &[StreamRow],
) -> io::Result<Proven> {
    let mut contradictions = Vec::new();
    let mut on_disk = hashes(dir, streams)?;
    let mut documents = [None, None];
    let mut oversized = None;
    for (document, name) in documents.iter_mut().zip([EVIDENCE, EVIDENCE_SIGNATURE]) {
        match read_document(dir, name)? {
            ReadDocument::Bytes(bytes) => *document = Some(bytes),
            ReadDocument::Missing => on_disk.retain(|stream, _| stream.as_str() != name),
            ReadDocument::TooLarge => {
                let reason = format!("{name} is larger than {} MiB", MAX_DOCUMENT >> 20);
                contradictions.push(reason.clone());
                oversized.get_or_insert(reason);
            }
        }
    }
    let [bytes, signature] = documents;
    let evidence = bytes.as_deref().and_then(|bytes| match own(bytes, run) {
        // Each file of the evidence gets a row, and is requested.
        Ok(evidence) if evidence.files.len() > STREAMS_PER_RUN => {
            let files = evidence.files.len();
            let reason = format!("{EVIDENCE} lists {files} files, and a run has at most {STREAMS_PER_RUN}");
            contradictions.push(reason.clone());
            oversized.get_or_insert(reason);
            None
        }
        Ok(evidence) => Some(evidence),
        Err(contradiction) => {
            contradictions.push(ErrorChain(&contradiction).to_string());
            None
        }
    });
    let signature_valid = match (&bytes, &signature, device) {
        (Some(bytes), Some(signature), Some(device)) => {
            Some(signature_fits(&device.public_key, bytes, signature))
        }
        _ => None,
    };
    if signature_valid == Some(false) {
        contradictions.push(format!("{EVIDENCE_SIGNATURE} does not match the device's key"));
    }
    let complete = evidence
        .as_ref()
        .is_some_and(|evidence| all_there(evidence, &on_disk, &mut contradictions));
    let delivery = DeliveryProof {
        complete,
        bytes: streams.iter().map(|stream| stream.committed).sum(),
        streams: streams
            .iter()
            .map(|stream| StreamProof {
                name: stream.name.clone(),
                bytes: stream.committed,
                sha256: on_disk.get(&stream.name).map(|(_, sha256)| sha256.clone()),
                stated_sha256: stream.stated_sha256.clone(),
            })
            .collect(),
    };
    let evidence_sha256 = bytes.as_deref().map(sha256_hex);
    Ok(Proven {
        evidence,
        evidence_sha256,
        signature_valid,
        delivery,
        contradictions,
        oversized,
        on_disk,
    })
}

/// Returns the length and hash of every complete stream, read again from disk, so that the record describes the current files.
fn hashes(dir: &RunDir, streams: &[StreamRow]) -> io::Result<BTreeMap<StreamName, (u64, String)>> {
    let mut found = BTreeMap::new();
    for stream in streams.iter().filter(|stream| stream.is_complete) {
        let path = dir.file(&stream.name);
        match sha256_of_file(&path) {
            Ok(hash) => drop(found.insert(stream.name.clone(), (hash.length, hash.hex()))),
            Err(error) => expect_lost(&path, error)?,
        }
    }
    Ok(found)
}

/// The result of reading a document.
enum ReadDocument {
    Bytes(Vec<u8>),
    Missing,
    TooLarge,
}

fn read_document(dir: &RunDir, name: &str) -> io::Result<ReadDocument> {
    let path = dir.files().join(name);
    match regular_file::read(&path, MAX_DOCUMENT) {
        Ok(bytes) => Ok(ReadDocument::Bytes(bytes)),
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => Ok(ReadDocument::TooLarge),
        Err(error) => expect_lost(&path, error).map(|()| ReadDocument::Missing),
    }
}

/// Accepts a read error that means that the disk has lost the bytes: the file is missing or its blocks are unreadable.
///
/// # Errors
/// Returns every other error, because the bytes may still exist.
fn expect_lost(path: &Path, error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound {
        return Ok(());
    }
    // ext4, xfs and btrfs return these for unreadable blocks and for wrong checksums.
    let damaged = [Errno::IO, Errno::BADMSG, Errno::UCLEAN, Errno::NODATA];
    if Errno::from_io_error(&error).is_some_and(|errno| damaged.contains(&errno)) {
        tracing::error!("cannot read {}: {error}", path.display());
        return Ok(());
    }
    Err(error)
}

/// Parses the evidence and checks that it belongs to this run, this device and the sent spec.
fn own(bytes: &[u8], run: &RunRow) -> Result<Evidence, ForeignEvidence> {
    let evidence = Evidence::from_json(bytes).map_err(ForeignEvidence::Unreadable)?;
    if evidence.run != run.id {
        return Err(ForeignEvidence::Run(evidence.run));
    }
    if evidence.device != run.device {
        return Err(ForeignEvidence::Device(evidence.device));
    }
    if Some(&evidence.spec_sha256) != run.spec_sha256.as_ref() {
        return Err(ForeignEvidence::Spec);
    }
    Ok(evidence)
}

fn all_there(
    evidence: &Evidence,
    on_disk: &BTreeMap<StreamName, (u64, String)>,
    contradictions: &mut Vec<String>,
) -> bool {
    let before = contradictions.len();
    for proof in &evidence.files {
        match on_disk.get(&proof.name) {
            None => contradictions.push(format!("{} is missing", proof.name)),
            Some((length, sha256)) if *length != proof.bytes || *sha256 != proof.sha256 => {
                contradictions.push(format!("{} is not what the evidence says", proof.name));
            }
            Some(_) => {}
        }
    }
    contradictions.len() == before
}
