//! The reason why an entry of an accuracy log cannot be read.

use std::io;

/// The reason why an entry cannot be read, without its position.
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
