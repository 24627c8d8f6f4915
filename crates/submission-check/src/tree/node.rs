//! One entry of a tree.

use std::path::{Path, PathBuf};

/// The type of an entry, with links followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Directory,
    /// A regular file.
    File,
    /// A broken or circular link.
    BrokenLink,
    /// A socket, a pipe or a device, which is never opened.
    Special,
}

/// An entry of a tree.
#[derive(Debug)]
pub struct Node {
    /// The path relative to the root, with `/` between names. Invalid UTF-8 is replaced.
    pub path: String,
    /// The type of the entry.
    pub kind: Kind,
    /// The size in bytes, for files.
    pub size: u64,
    /// Whether the entry is a link.
    pub link: bool,
    /// Whether the directory was not listed, for example because a link leads to it from within itself.
    pub closed: bool,
    /// The byte offset of the last part of the path.
    pub(super) name_start: usize,
    /// The number of nodes below it, which follow it in the tree's list.
    pub(super) below: usize,
    /// The path on disk relative to the root, if it is not UTF-8.
    pub(super) raw: Option<PathBuf>,
}

impl Node {
    /// Creates the node of the tree's root.
    pub(super) fn root() -> Self {
        Self {
            path: String::new(),
            kind: Kind::Directory,
            size: 0,
            link: false,
            closed: false,
            name_start: 0,
            below: 0,
            raw: None,
        }
    }

    /// Returns the last part of the path.
    #[must_use]
    pub fn name(&self) -> &str {
        self.path.get(self.name_start..).unwrap_or(&self.path)
    }

    /// Returns whether the path on disk is not UTF-8.
    #[must_use]
    pub fn has_unreadable_name(&self) -> bool {
        self.raw.is_some()
    }

    /// Returns whether the entry is a directory without contents.
    #[must_use]
    pub fn is_empty_directory(&self) -> bool {
        self.kind == Kind::Directory && !self.closed && self.below == 0
    }

    /// Returns the path relative to the root with which the entry is opened.
    pub(super) fn on_disk(&self) -> &Path {
        on_disk(self.raw.as_deref(), &self.path)
    }
}

/// Returns the path relative to the root with which a node is opened.
pub(super) fn on_disk<'a>(raw: Option<&'a Path>, path: &'a str) -> &'a Path {
    raw.unwrap_or(Path::new(path))
}
