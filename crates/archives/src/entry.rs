//! A file in an archive: its path and size.

use std::io::Read;

use regatta_types::assets::is_inner_path;

use crate::error::{ArchiveError, RefusedEntry};

/// A file in an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The path in the archive. It is relative, and does not leave the directory into which the archive is unpacked.
    pub name: String,
    /// The size in bytes.
    pub bytes: u64,
}

impl Entry {
    /// Creates the entry of a file, whose path may begin with `./`.
    ///
    /// # Errors
    /// Returns [`RefusedEntry::Path`] if the path leaves the directory.
    pub(crate) fn new(name: &str, bytes: u64) -> Result<Self, RefusedEntry> {
        let name = name.trim_start_matches("./");
        match is_inner_path(name) {
            true => Ok(Self {
                name: name.to_owned(),
                bytes,
            }),
            false => Err(RefusedEntry::Path),
        }
    }
}

/// Receives each file of an archive with its content.
pub(crate) type Visit<'a> = dyn FnMut(&Entry, &mut dyn Read) -> Result<(), ArchiveError> + 'a;
