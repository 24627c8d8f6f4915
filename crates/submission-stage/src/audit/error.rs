//! The errors of verifying an audit. A failed audit is not an error.

use regatta_types::ErrorKind;
use std::path::PathBuf;

use regatta_mllog::read::{AccuracyLogError, DetailError, LogFileError};

use super::Dtype;
use regatta_submission_check::files::FileError;

/// The error if an audit cannot be verified.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// There is no audit of this name.
    #[error("`{name}` is not an audit that can be verified here; these are TEST01, TEST04, TEST05")]
    UnknownTest {
        /// The requested name.
        name: String,
    },
    /// The round does not have the audit.
    #[error("round {round} has no {test}")]
    NotInRound {
        /// The audit's name.
        test: &'static str,
        /// The round's name.
        round: String,
    },
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// An accuracy log cannot be parsed.
    #[error("cannot read {path}", path = path.display())]
    AccuracyLog {
        /// The log's path.
        path: PathBuf,
        /// The position and the reason.
        #[source]
        source: AccuracyLogError,
    },
    /// A detail log cannot be parsed.
    #[error("an audit needs complete detail logs")]
    DetailLog(#[from] LogFileError<DetailError>),
    /// A value that the score needs is missing in a detail log.
    #[error("{path} has no usable `{key}`", path = path.display())]
    DetailKey {
        /// The log's path.
        path: PathBuf,
        /// The missing key.
        key: &'static str,
    },
    /// A response is not an integer number of elements.
    #[error(
        "the response of sample {qsl_idx} in {path} is not a multiple of the size of {dtype}: name the data type that the SUT writes", path = path.display()
    )]
    Ragged {
        /// The log's path.
        path: PathBuf,
        /// The index of the sample.
        qsl_idx: u64,
        /// The data type that was used.
        dtype: Dtype,
    },
    /// A line of a summary has the prefix of a score but no number.
    #[error("line {line} of {path} has no number after `: `", path = path.display())]
    SummaryLine {
        /// The summary's path.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// A summary is not UTF-8 text.
    #[error("{path} is not text", path = path.display())]
    SummaryText {
        /// The summary's path.
        path: PathBuf,
        /// The position of the invalid bytes.
        #[source]
        source: std::string::FromUtf8Error,
    },
    /// The accuracy script failed.
    #[error("no accuracy of {log}", log = log.display())]
    AccuracyScript {
        /// The log that the script read.
        log: PathBuf,
        /// The reason.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Both accuracy logs are the same file.
    #[error("{path} is not the log of another run: reference and audit are one file", path = path.display())]
    SameFile {
        /// The file's path.
        path: PathBuf,
    },
}

impl AuditError {
    /// Returns who has to act.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::NotInRound { .. } | Self::SameFile { .. } => ErrorKind::Usage,
            _ => ErrorKind::Internal,
        }
    }
}
