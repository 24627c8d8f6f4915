//! The result of sealing a run, which the run applies. `sealer` produces it.

use std::io;

use regatta_types::{StreamName, documents::end_reason};

use super::run_dir::{RunDirError, Unflushed};

/// File name of the evidence.
pub(crate) const EVIDENCE: &str = "evidence.json";
/// File name of the signature: hexadecimal, Ed25519 over the exact bytes of the evidence.
pub(crate) const SIGNATURE: &str = "evidence.sig";

/// A stream with its final length and hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SealedStream {
    /// The stream's name.
    pub(crate) name: StreamName,
    /// Its length in bytes.
    pub(crate) length: u64,
    /// Its SHA-256.
    pub(crate) sha256: [u8; 32],
}

/// The result of sealing.
#[derive(Debug)]
pub(crate) struct Sealed {
    /// All streams that were hashed, including the evidence and its signature.
    pub(crate) streams: Vec<SealedStream>,
    /// Streams that could not be flushed or hashed.
    pub(crate) unread: Vec<StreamName>,
    /// Whether every file of the run was hashed.
    pub(crate) all_hashed: bool,
    /// Why the evidence is missing, if it is.
    pub(crate) incomplete: Option<SealError>,
}

impl Sealed {
    /// Returns the files that the next attempt must seal: the unread streams, the evidence and its signature. Returns
    /// nothing if another attempt cannot help.
    pub(crate) fn unsealed_files(&self) -> Vec<StreamName> {
        match self.incomplete {
            None | Some(SealError::Spec(_)) => Vec::new(),
            Some(_) => {
                let evidence = [EVIDENCE, SIGNATURE]
                    .into_iter()
                    .filter_map(|own| own.parse().ok());
                self.unread.iter().cloned().chain(evidence).collect()
            }
        }
    }
}

/// Why a run could not be sealed completely. Its files are kept and delivered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SealError {
    /// A file could not be read, hashed or written.
    #[error("{what} cannot be sealed")]
    File {
        /// The file.
        what: String,
        /// The operating system's error.
        #[source]
        source: io::Error,
    },
    /// A file could not be flushed.
    #[error(transparent)]
    Unflushed(#[from] Unflushed),
    /// The spec cannot be read.
    #[error("the run's spec is missing")]
    Spec(#[source] RunDirError),
    /// The sealing thread panicked or could not be started.
    #[error("{}", end_reason::SEALING_ENDED)]
    Thread,
}

/// Flushed files and their lengths in bytes.
pub(crate) type OnDisk = Vec<(StreamName, u64)>;
