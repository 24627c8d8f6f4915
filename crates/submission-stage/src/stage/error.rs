//! The errors of staging.

use std::path::PathBuf;

use regatta_types::{ErrorKind, documents::DocumentError};

use super::{StagingFinding, staging_finding};
use crate::{DraftError, audit::AuditError};
use regatta_submission_check::{check::power::OWN_PROGRAMS, files::FileError};

/// The error if no tree was written. No part of the tree remains.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StageError {
    /// Something is missing or may not be submitted.
    #[error("nothing was staged; missing or not allowed ({count}):{list}", count = findings.len(), list = staging_finding::list(findings))]
    Refused { findings: Vec<StagingFinding> },
    /// The output exists already or cannot be written.
    #[error(transparent)]
    Draft(#[from] DraftError),
    /// A run's document cannot be parsed.
    #[error("{path} cannot be used", path = path.display())]
    Document {
        /// The document's path.
        path: PathBuf,
        /// The position and the reason.
        #[source]
        source: DocumentError,
    },
    /// An audit cannot be verified.
    #[error("the audit in {run} cannot be verified", run = run.display())]
    Audit {
        /// The run's directory.
        run: PathBuf,
        /// The reason.
        #[source]
        source: AuditError,
    },
    /// A file differs from the one that the device proves.
    #[error("{path} has the SHA-256 {found}, not {proven} as in its evidence: the run was changed after delivery", path = path.display())]
    NotProven {
        /// The file's path.
        path: PathBuf,
        /// The SHA-256 of the file.
        found: String,
        /// The SHA-256 in the evidence.
        proven: String,
    },
    /// A file is not in the device's evidence.
    #[error("{path} is not listed in its evidence: it was added after the run", path = path.display())]
    NotListed {
        /// The file's path.
        path: PathBuf,
    },
    /// Regatta's own power client or server made a power session.
    #[error("the power session {directory} can never be staged: {OWN_PROGRAMS}", directory = directory.display())]
    InformativePower {
        /// The session's directory.
        directory: PathBuf,
    },
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
}

impl StageError {
    /// Returns who has to act.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Draft(DraftError::Exists { .. }) | Self::InformativePower { .. } => ErrorKind::Usage,
            _ => ErrorKind::Internal,
        }
    }
}

/// The error if answers cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnswersError {
    /// The file is not TOML or has an unknown key.
    #[error("the answers cannot be parsed")]
    Toml(#[from] Box<toml::de::Error>),
    /// The file was written for a newer program.
    #[error("the answers have schema {found}; this program reads up to {known}: update it")]
    TooNew {
        /// The file's schema number.
        found: u16,
        /// The newest schema number that this program reads.
        known: u16,
    },
}
