//! One entry of a tree.

use std::path::PathBuf;

/// What an entry is, links followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A link that leads nowhere, or in a circle.
    BrokenLink,
    /// A socket, a pipe or a device: never opened.
    Special,
}

/// An entry of a tree.
#[derive(Debug)]
pub struct Node {
    /// Its path from the root, with `/` between names; what is no text is replaced.
    pub path: String,
    /// What it is.
    pub kind: Kind,
    /// Its size in bytes, for files.
    pub size: u64,
    /// Whether it is a link.
    pub link: bool,
    /// Whether a directory is shown without its contents, because a link leads to it from within itself.
    pub closed: bool,
    pub(super) children: Vec<usize>,
    pub(super) raw: Option<PathBuf>,
}

impl Node {
    /// The last part of the path.
    #[must_use]
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Whether the name on disk is no UTF-8 text.
    #[must_use]
    pub fn has_unreadable_name(&self) -> bool {
        self.raw.is_some()
    }

    /// Whether a directory holds nothing.
    #[must_use]
    pub fn is_empty_directory(&self) -> bool {
        self.kind == Kind::Directory && !self.closed && self.children.is_empty()
    }
}
