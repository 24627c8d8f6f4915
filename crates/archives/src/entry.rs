//! A file of an archive: its path and size.

use std::io::Read;

use regatta_types::assets::is_inner_path;

use crate::error::{ArchiveError, RefusedEntry};

/// A file of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its path in the archive, which stays below a directory.
    pub name: String,
    /// Its size in bytes.
    pub bytes: u64,
}

impl Entry {
    /// Makes the entry of a file, whose path may begin with `./`.
    ///
    /// # Errors
    /// [`RefusedEntry::Path`] when the path leads elsewhere.
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
