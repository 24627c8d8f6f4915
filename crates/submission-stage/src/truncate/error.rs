//! The errors of a truncation as a whole. A [`super::Problem`] concerns a single log.

use regatta_types::ErrorKind;
use std::path::PathBuf;

use crate::DraftError;
use regatta_submission_check::files::FileError;

/// The error if a truncation was not completed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TruncateError {
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The output cannot be written.
    #[error(transparent)]
    Draft(#[from] DraftError),
    /// The submitter has no directory.
    #[error("{input} has no submission of `{submitter}` (looked for {looked_for})", input = input.display())]
    NoSubmission {
        /// The submission's root.
        input: PathBuf,
        /// The requested submitter.
        submitter: String,
        /// The directories that were searched.
        looked_for: String,
    },
    /// The submitter's name is not a single directory name.
    #[error("`{submitter}` is not a directory name")]
    NoName {
        /// The requested submitter.
        submitter: String,
    },
    /// The output exists already.
    #[error("{path} exists already: name a new directory, or remove it", path = path.display())]
    OutputExists {
        /// The directory.
        path: PathBuf,
    },
    /// The backup or output is inside the submission.
    #[error("{path} is inside the submission {input}, and would be submitted with it", path = path.display(), input = input.display())]
    Inside {
        /// The backup or output.
        path: PathBuf,
        /// The submission.
        input: PathBuf,
    },
    /// The directory in which the output is prepared has other contents.
    #[error("{path} already exists, and was not created by an interrupted truncation", path = path.display())]
    InTheWay {
        /// The directory.
        path: PathBuf,
    },
    /// A link leads to a directory that contains it.
    #[error("{path} is a link to a directory that contains it: remove it", path = path.display())]
    Circle {
        /// The link.
        path: PathBuf,
    },
    /// A link to a directory is below another such link.
    #[error("{path} is a link to a directory within a linked directory; hint: put the directory itself there", path = path.display())]
    LinkedTwice {
        /// The link.
        path: PathBuf,
    },
    /// The directories are nested too deeply.
    #[error("{path} is too deep: links are circular, or this is not a submission", path = path.display())]
    TooDeep {
        /// The directory at which the copy stopped.
        path: PathBuf,
    },
    /// The manifest of a backup cannot be parsed.
    #[error("the manifest {path} cannot be parsed", path = path.display())]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// The position and the reason.
        #[source]
        source: serde_json::Error,
    },
    /// A worker thread panicked, which no input should cause.
    #[error("a worker thread of the truncation has failed")]
    Worker,
}

impl TruncateError {
    /// Returns who has to act.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::NoSubmission { .. }
            | Self::NoName { .. }
            | Self::OutputExists { .. }
            | Self::Inside { .. } => ErrorKind::Usage,
            _ => ErrorKind::Internal,
        }
    }
}
