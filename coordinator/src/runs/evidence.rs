//! A delivered run's evidence, held against what lies on the coordinator's disk: the signature against the device's
//! key, every file against its hash. Reads; judges no figure.

use std::{collections::BTreeMap, fs, io};

use regatta_rules::{
    StreamName,
    documents::{DeliveryProof, Document as _, DocumentError, Evidence, StreamProof},
};
use ring::signature::{ED25519, UnparsedPublicKey};

use crate::{
    hex::{hex, sha256, sha256_of_file, unhex},
    store::{DeviceRow, RunRow, StreamRow},
    workspace::RunDir,
};

/// The evidence among the run's files.
pub(super) const EVIDENCE: &str = "evidence.json";
/// Its Ed25519 signature over the exact bytes, in hexadecimal.
pub(super) const SIGNATURE: &str = "evidence.sig";

/// What was found.
#[derive(Debug)]
pub(super) struct Proven {
    /// The evidence, when it is there, reads, and is this run's.
    pub(super) evidence: Option<Evidence>,
    /// SHA-256 of its exact bytes.
    pub(super) evidence_sha256: Option<String>,
    /// Whether the signature fits the device's key; `None` while either is missing.
    pub(super) signature_valid: Option<bool>,
    /// What arrived, compared with the evidence.
    pub(super) delivery: DeliveryProof,
    /// What does not fit, in words.
    pub(super) contradictions: Vec<String>,
}

/// Holds a run's files against its evidence.
///
/// # Errors
/// When a file cannot be read. What contradicts itself is an answer, not an error.
pub(super) fn prove(
    dir: &RunDir,
    run: &RunRow,
    device: Option<&DeviceRow>,
    streams: &[StreamRow],
) -> io::Result<Proven> {
    let mut contradictions = Vec::new();
    let on_disk = hashes(dir, streams)?;
    let bytes = read_optional(dir, EVIDENCE)?;
    let signature = read_optional(dir, SIGNATURE)?;
    let evidence = bytes.as_deref().and_then(|bytes| match own(bytes, run) {
        Ok(evidence) => Some(evidence),
        Err(contradiction) => {
            contradictions.push(contradiction);
            None
        }
    });
    let signature_valid = match (&bytes, &signature, device) {
        (Some(bytes), Some(signature), Some(device)) => Some(fits(&device.public_key, bytes, signature)),
        _ => None,
    };
    if signature_valid == Some(false) {
        contradictions.push(format!("{SIGNATURE} does not fit the device's key"));
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
    let evidence_sha256 = bytes.as_deref().map(|bytes| hex(&sha256(bytes)));
    Ok(Proven {
        evidence,
        evidence_sha256,
        signature_valid,
        delivery,
        contradictions,
    })
}

/// Length and hash of every whole stream, read anew from the disk: what is recorded is what lies there now.
fn hashes(dir: &RunDir, streams: &[StreamRow]) -> io::Result<BTreeMap<StreamName, (u64, String)>> {
    let mut found = BTreeMap::new();
    for stream in streams.iter().filter(|stream| stream.whole) {
        match sha256_of_file(&dir.file(&stream.name)) {
            Ok((length, sha256)) => drop(found.insert(stream.name.clone(), (length, hex(&sha256)))),
            // Whoever removed it, the record says that it is missing.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

fn read_optional(dir: &RunDir, name: &str) -> io::Result<Option<Vec<u8>>> {
    match fs::read(dir.files().join(name)) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The evidence, if it speaks of this run, this device and the spec that was sent.
fn own(bytes: &[u8], run: &RunRow) -> Result<Evidence, String> {
    let evidence = Evidence::from_json(bytes)
        .map_err(|error: DocumentError| format!("{EVIDENCE}: {:#}", anyhow::Error::from(error)))?;
    if evidence.run != run.id {
        return Err(format!("{EVIDENCE} is of run {}", evidence.run));
    }
    if evidence.device != run.device {
        return Err(format!("{EVIDENCE} is of device {}", evidence.device));
    }
    if Some(&evidence.spec_sha256) != run.spec_sha256.as_ref() {
        return Err(format!(
            "{EVIDENCE} is of another spec than the one that was sent"
        ));
    }
    Ok(evidence)
}

/// Whether a signature in hexadecimal is the key's over these exact bytes.
pub(super) fn fits(public_key: &[u8; 32], bytes: &[u8], signature: &[u8]) -> bool {
    unhex(signature).is_some_and(|raw| {
        UnparsedPublicKey::new(&ED25519, public_key)
            .verify(bytes, &raw)
            .is_ok()
    })
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
