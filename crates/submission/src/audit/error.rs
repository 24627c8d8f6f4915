//! What can keep an audit from being verified. A failed audit is no error.

use std::path::PathBuf;

use regatta_mllog::read::{AccuracyLogError, DetailError, LogFileError};

use super::Dtype;
use crate::files::FileError;

/// An audit that cannot be judged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// No such audit.
    #[error("`{name}` is no audit that can be verified here; these are TEST01, TEST04, TEST05")]
    UnknownTest {
        /// What was given.
        name: String,
    },
    /// The round does not ask for the audit.
    #[error("round {round} has no {test}")]
    NotInRound {
        /// The audit.
        test: &'static str,
        /// The round.
        round: String,
    },
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// An accuracy log does not read.
    #[error("cannot read {path}", path = path.display())]
    AccuracyLog {
        /// The log.
        path: PathBuf,
        /// Where and why.
        #[source]
        source: AccuracyLogError,
    },
    /// A detail log does not read.
    #[error("an audit needs whole detail logs")]
    DetailLog(#[from] LogFileError<DetailError>),
    /// A detail log lacks what scores are judged by.
    #[error("{path} has no usable `{key}`", path = path.display())]
    DetailKey {
        /// The log.
        path: PathBuf,
        /// The key.
        key: &'static str,
    },
    /// A response that is no whole number of elements.
    #[error(
        "the response of sample {qsl_idx} in {path} is no whole number of {dtype}: name the data type that the SUT writes", path = path.display()
    )]
    Ragged {
        /// The log.
        path: PathBuf,
        /// The sample.
        qsl_idx: u64,
        /// The type in question.
        dtype: Dtype,
    },
    /// A line of a summary that looks like a score and has none.
    #[error("line {line} of {path} has no number after `: `", path = path.display())]
    SummaryLine {
        /// The summary.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// The summary is no text.
    #[error("{path} is no text", path = path.display())]
    SummaryText {
        /// The summary.
        path: PathBuf,
        /// Where it stops being one.
        #[source]
        source: std::string::FromUtf8Error,
    },
    /// The accuracy script did not do its work.
    #[error("no accuracy of {log}", log = log.display())]
    AccuracyScript {
        /// The log that it was given.
        log: PathBuf,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The two accuracy logs cannot be told apart or opened.
    #[error("{path} is not the log of another run: reference and audit are one file", path = path.display())]
    SameFile {
        /// The file.
        path: PathBuf,
    },
}
