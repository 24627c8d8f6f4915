//! What can go wrong with a truncation as a whole. What is wrong with a single log is a [`super::Problem`].

use std::path::PathBuf;

use crate::{DraftError, files::FileError};

/// A truncation that could not be done, or not to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TruncateError {
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The output cannot be written.
    #[error(transparent)]
    Draft(#[from] DraftError),
    /// There is no directory of that submitter.
    #[error("{input} has no submission of `{submitter}` (looked for {looked_for})", input = input.display())]
    NoSubmission {
        /// The root that was given.
        input: PathBuf,
        /// The submitter that was given.
        submitter: String,
        /// The directories that would have been one.
        looked_for: String,
    },
    /// The submitter's name would lead elsewhere.
    #[error("`{submitter}` is no directory name")]
    NoName {
        /// The submitter that was given.
        submitter: String,
    },
    /// The output is there already.
    #[error("{path} exists already: name a new directory, or remove it", path = path.display())]
    OutputExists {
        /// The directory.
        path: PathBuf,
    },
    /// Backup or output within the submission.
    #[error("{path} lies inside the submission {input}, and would be submitted with it", path = path.display(), input = input.display())]
    Inside {
        /// The backup or output that was given.
        path: PathBuf,
        /// The submission.
        input: PathBuf,
    },
    /// The place where the output is prepared holds something else.
    #[error("{path} is in the way: it was not made by an interrupted truncation", path = path.display())]
    InTheWay {
        /// The directory.
        path: PathBuf,
    },
    /// A link to a directory that holds it.
    #[error("{path} is a link to a directory that it lies in: remove it", path = path.display())]
    Circle {
        /// The link.
        path: PathBuf,
    },
    /// A link to a directory below another one.
    #[error("{path} is a link to a directory within a linked directory; hint: put the directory itself there", path = path.display())]
    LinkedTwice {
        /// The link.
        path: PathBuf,
    },
    /// Directories that do not end.
    #[error("{path} lies too deep: links lead in a circle, or this is no submission", path = path.display())]
    TooDeep {
        /// Where it was given up.
        path: PathBuf,
    },
    /// The manifest of a backup does not read.
    #[error("the manifest {path} does not read", path = path.display())]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// Where and why.
        #[source]
        source: serde_json::Error,
    },
    /// A worker died, which it does on no input.
    #[error("a worker thread of the truncation died")]
    Worker,
}
