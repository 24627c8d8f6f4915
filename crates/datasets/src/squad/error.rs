//! The errors of SQuAD's files: questions and vocabulary.

use std::{io, path::PathBuf};

use super::vocabulary::VocabularyError;
use crate::published_hash::OtherFileError;

/// The error for a file of a SQuAD benchmark that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SquadError {
    /// A file is missing or unreadable.
    #[error("cannot read the {what} {path}", path = path.display())]
    Read {
        /// `questions` or `vocabulary`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The questions are not in SQuAD's form.
    #[error("{path} has no questions in the form of SQuAD 1.1", path = path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// The cause, with line and column.
        #[source]
        source: serde_json::Error,
    },
    /// The questions are of another version of SQuAD.
    #[error("{path} is SQuAD {found}, but the benchmark needs SQuAD 1.1; hint: `regatta data show {benchmark}`", path = path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The version in the file.
        found: String,
        /// The benchmark's name.
        benchmark: String,
    },
    /// A file is not the published one.
    #[error(transparent)]
    OtherFile(#[from] OtherFileError),
    /// The vocabulary is not the model's.
    #[error("{path} is the vocabulary of another model: {reason}; hint: use the vocab.txt that is published with the network", path = path.display())]
    Vocabulary {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: VocabularyError,
    },
    /// The questions have too few or too many windows of text.
    #[error("{path} makes {found} samples, but the benchmark has {expected}; hint: `regatta data show {benchmark}` shows the right file", path = path.display())]
    Samples {
        /// The file.
        path: PathBuf,
        /// The number in the benchmark's file.
        expected: usize,
        /// The number of windows.
        found: usize,
        /// The benchmark's name.
        benchmark: String,
    },
}
