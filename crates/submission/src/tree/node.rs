//! One entry of a tree.

use std::path::{Path, PathBuf};

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
    /// Where the last part of the path begins.
    pub(super) name_start: usize,
    /// How many nodes lie below it; they follow it in the tree's list.
    pub(super) below: usize,
    /// Where it lies below the root, if its path is no text.
    pub(super) raw: Option<PathBuf>,
}

impl Node {
    /// The tree's root.
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

    /// The last part of the path.
    #[must_use]
    pub fn name(&self) -> &str {
        self.path.get(self.name_start..).unwrap_or(&self.path)
    }

    /// Whether the name on disk is no UTF-8 text.
    #[must_use]
    pub fn has_unreadable_name(&self) -> bool {
        self.raw.is_some()
    }

    /// Whether a directory holds nothing.
    #[must_use]
    pub fn is_empty_directory(&self) -> bool {
        self.kind == Kind::Directory && !self.closed && self.below == 0
    }

    /// The path below the root by which it is opened.
    pub(super) fn on_disk(&self) -> &Path {
        on_disk(self.raw.as_deref(), &self.path)
    }
}

/// The path below the root by which a node is opened.
pub(super) fn on_disk<'a>(raw: Option<&'a Path>, path: &'a str) -> &'a Path {
    raw.unwrap_or(Path::new(path))
}
