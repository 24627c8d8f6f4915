//! Why nothing was staged.

use std::path::PathBuf;

use regatta_types::documents::DocumentError;

use super::{StagingFinding, staging_finding};
use crate::{DraftError, audit::AuditError, files::FileError};

/// A tree that was not made. Nothing is left of the attempt.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StageError {
    /// Something is missing, or may not be submitted.
    #[error("nothing was staged; missing or not allowed ({count}):{list}", count = findings.len(), list = staging_finding::list(findings))]
    Refused {
        /// All of them.
        findings: Vec<StagingFinding>,
    },
    /// The place is taken, or cannot be written.
    #[error(transparent)]
    Draft(#[from] DraftError),
    /// A run's document does not read.
    #[error("{path} cannot be used", path = path.display())]
    Document {
        /// The file.
        path: PathBuf,
        /// Where and why.
        #[source]
        source: DocumentError,
    },
    /// An audit cannot be verified.
    #[error("the audit in {run} cannot be verified", run = run.display())]
    Audit {
        /// The run's directory.
        run: PathBuf,
        /// Why.
        #[source]
        source: AuditError,
    },
    /// A file is not the one that the device proves.
    #[error("{path} has the SHA-256 {found}, not {proven} as its evidence says: the run was changed after delivery", path = path.display())]
    NotProven {
        /// The file.
        path: PathBuf,
        /// Its SHA-256.
        found: String,
        /// The one in the evidence.
        proven: String,
    },
    /// A file came from somewhere else than the device.
    #[error("{path} is not listed in its evidence: it was added after the run", path = path.display())]
    NotListed {
        /// The file.
        path: PathBuf,
    },
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Answers that do not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnswersError {
    /// Not TOML, or an unknown key.
    #[error("the answers do not read")]
    Toml(#[from] Box<toml::de::Error>),
    /// Written for a newer program.
    #[error("the answers have schema {found}; this program reads up to {known}: update it")]
    TooNew {
        /// The file's schema number.
        found: u16,
        /// The newest that this program reads.
        known: u16,
    },
}
