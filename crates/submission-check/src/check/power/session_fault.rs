//! A fault of a session beyond the official checks.

use std::fmt;

/// A fault of a session beyond the official checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFault {
    /// The file's path in the tree.
    pub path: String,
    /// The line, if the fault is in one.
    pub line: Option<u64>,
    /// The fault, as a sentence about the file.
    pub text: String,
}

impl fmt::Display for SessionFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path, self.text),
            None => write!(f, "{}: {}", self.path, self.text),
        }
    }
}
