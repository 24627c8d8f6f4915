//! Why an entry of an accuracy log does not read.

use std::io;

/// Why an entry does not read, before its place is added.
pub(super) enum EntryFault {
    Io(io::Error),
    Ends,
    Wrong(String),
}

impl From<io::Error> for EntryFault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
