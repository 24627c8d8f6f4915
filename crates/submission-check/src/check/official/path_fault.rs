//! An error that an official check reports about a path in the tree.

use super::report::Note;

/// An error about a path, with which the official program continues.
#[derive(Debug, Clone)]
pub(super) struct PathFault {
    pub(super) path: String,
    pub(super) text: String,
}

impl PathFault {
    pub(super) fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            text: text.into(),
        }
    }

    /// Returns the message that makes the checker fail.
    pub(super) fn into_note(self) -> Note {
        Note {
            path: self.path,
            text: self.text,
            fatal: true,
        }
    }
}
