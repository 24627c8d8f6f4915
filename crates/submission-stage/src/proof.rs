//! Verifies the proof of a finished run: `evidence.json`, signed by the device's Ed25519 key, and the hashes in it.
//!
//! The device's id is the fingerprint of that key. The module reads one run's directory. It does not use a workspace and does not
//! check results.

use std::{
    io,
    path::{Path, PathBuf},
};

use regatta_fsutil::{
    hash::{sha256_hex, unhex},
    regular_file::MAX_DOCUMENT,
};
use regatta_types::{
    DeviceId,
    documents::{
        Document as _, DocumentError, Evidence,
        document_name::{DEVICE_KEY, EVIDENCE, EVIDENCE_SIGNATURE},
    },
};
use ring::signature::{ED25519, UnparsedPublicKey};

use regatta_submission_check::files::{FileError, read_small, sha256};

/// The largest key or signature file that is read, in bytes.
const MAX_DIGITS: u64 = 4096;

/// An Ed25519 public key.
pub type PublicKey = [u8; 32];

/// Evidence with a valid signature of the device that it names.
#[derive(Debug, Clone)]
pub struct SignedEvidence {
    pub evidence: Evidence,
    /// The SHA-256 of its exact bytes, in hexadecimal.
    pub sha256: String,
}

/// The reason why a run or one of its files is not proven.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProofError {
    /// The caller has no key, and the run's directory has none.
    #[error("unknown public key of the run's device: {} is missing", .0.display())]
    NoKey(PathBuf),
    /// The key file does not contain a key.
    #[error("{} has no public key", .0.display())]
    MalformedKey(PathBuf),
    /// The key belongs to another device.
    #[error("the evidence names device {device}, and the public key is that of device {fingerprint}")]
    OtherDevice {
        /// The device in the evidence.
        device: DeviceId,
        /// The fingerprint of the key.
        fingerprint: DeviceId,
    },
    /// The signature does not exist.
    #[error("its evidence is not signed by the device: there is no {EVIDENCE_SIGNATURE}")]
    NoSignature,
    /// The signature was not made with this key over these bytes.
    #[error("its evidence is not signed by the device: {EVIDENCE_SIGNATURE} does not match")]
    Signature,
    /// The evidence cannot be parsed.
    #[error("{path} cannot be used", path = path.display())]
    Document {
        /// The file.
        path: PathBuf,
        /// The position and the reason.
        #[source]
        source: DocumentError,
    },
    /// The evidence does not list a file.
    #[error("{0}: the signed evidence does not list it")]
    NotListed(String),
    /// A file differs from the listed one.
    #[error("{0}: it is not the file that the signed evidence lists")]
    Changed(String),
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
}

impl SignedEvidence {
    /// Reads a run's evidence and verifies its signature. Without a `key`, uses the one in the run's directory.
    ///
    /// # Errors
    /// Returns [`ProofError`] if the device named in the evidence has not signed it.
    pub fn read(run: &Path, key: Option<&PublicKey>) -> Result<Self, ProofError> {
        let files = run.join("files");
        let path = files.join(EVIDENCE);
        let bytes = read_small(&path, MAX_DOCUMENT)?;
        let evidence = Evidence::from_json(&bytes).map_err(|source| ProofError::Document { path, source })?;
        let key = match key {
            Some(key) => *key,
            None => key_beside(run)?.ok_or_else(|| ProofError::NoKey(run.join(DEVICE_KEY)))?,
        };
        let fingerprint = DeviceId::of_public_key(&key);
        if fingerprint != evidence.device {
            let device = evidence.device;
            return Err(ProofError::OtherDevice { device, fingerprint });
        }
        let signature = optional(&files.join(EVIDENCE_SIGNATURE))?.ok_or(ProofError::NoSignature)?;
        if !signature_fits(&key, &bytes, &signature) {
            return Err(ProofError::Signature);
        }
        let sha256 = sha256_hex(&bytes);
        Ok(Self { evidence, sha256 })
    }

    /// Compares one of the run's files with the hash in the evidence.
    ///
    /// # Errors
    /// Returns [`ProofError`] if it is not the file that the device listed.
    pub fn verify_file(&self, run: &Path, name: &str) -> Result<(), ProofError> {
        let not_listed = || ProofError::NotListed(name.to_owned());
        let listed = self.evidence.file(name).ok_or_else(not_listed)?;
        let (found, bytes) = sha256(&run.join("files").join(name))?;
        if found == listed.sha256 && bytes == listed.bytes {
            Ok(())
        } else {
            Err(ProofError::Changed(name.to_owned()))
        }
    }
}

/// Returns whether a signature in hexadecimal was made with this key over exactly these bytes.
#[must_use]
pub fn signature_fits(key: &PublicKey, bytes: &[u8], signature: &[u8]) -> bool {
    decode(signature).is_some_and(|raw| UnparsedPublicKey::new(&ED25519, key).verify(bytes, &raw).is_ok())
}

/// Returns the public key in a run's directory, or `None` if the file does not exist.
///
/// # Errors
/// Returns an error if the file cannot be read or does not contain a key.
pub fn key_beside(run: &Path) -> Result<Option<PublicKey>, ProofError> {
    let path = run.join(DEVICE_KEY);
    let Some(digits) = optional(&path)? else {
        return Ok(None);
    };
    let key = decode(&digits).and_then(|bytes| bytes.try_into().ok());
    key.map(Some).ok_or(ProofError::MalformedKey(path))
}

fn optional(path: &Path) -> Result<Option<Vec<u8>>, FileError> {
    match read_small(path, MAX_DIGITS) {
        Err(error) if error.source.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

/// Decodes hexadecimal digits with optional white space around them.
fn decode(digits: &[u8]) -> Option<Vec<u8>> {
    unhex(std::str::from_utf8(digits.trim_ascii()).ok()?)
}
