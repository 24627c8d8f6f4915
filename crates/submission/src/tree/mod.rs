//! A submission tree as it was found: one walk, then look-ups in memory.
//!
//! Trees come from strangers. Links that lead in circles, names that are no text, sockets and pipes are all recorded as
//! what they are; nothing but regular files is ever opened. Contents are not this module's business.

mod index;
mod node;
mod scan;

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use crate::files::{Directory, Links};
use index::Index;
pub use node::{Kind, Node};
pub use scan::ScanError;
pub(crate) use scan::leads_upwards;

/// A directory tree, indexed by paths relative to its root, with `/` between names.
#[derive(Debug)]
pub struct Tree {
    root: PathBuf,
    /// The root, open: files are opened below it.
    top: Directory,
    /// Every directory is followed by all that lies below it.
    nodes: Vec<Node>,
    index: Index,
    faults: Vec<(String, String)>,
}

impl Tree {
    /// Walks the tree below `root`.
    ///
    /// # Errors
    /// When `root` itself cannot be listed. Anything below it that cannot is kept in [`Tree::faults`].
    pub fn scan(root: &Path) -> Result<Self, ScanError> {
        let scanned = scan::scan(root)?;
        Ok(Self {
            root: root.to_owned(),
            top: scanned.top,
            index: Index::of(&scanned.nodes),
            nodes: scanned.nodes,
            faults: scanned.faults,
        })
    }

    /// The directory that was walked.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What could not be walked: path and reason.
    #[must_use]
    pub fn faults(&self) -> &[(String, String)] {
        &self.faults
    }

    /// Everything below the root, parents before children, names in order.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// What lies at `path`.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&Node> {
        self.nodes.get(self.number(path)?)
    }

    /// Whether something lies at `path`; a link that leads nowhere does not count.
    #[must_use]
    pub fn exists(&self, path: &str) -> bool {
        self.get(path).is_some_and(|node| node.kind != Kind::BrokenLink)
    }

    /// Whether a directory, or a link to one, lies at `path`.
    #[must_use]
    pub fn is_directory(&self, path: &str) -> bool {
        self.get(path).is_some_and(|node| node.kind == Kind::Directory)
    }

    /// Whether a regular file, or a link to one, lies at `path`.
    #[must_use]
    pub fn is_file(&self, path: &str) -> bool {
        self.get(path).is_some_and(|node| node.kind == Kind::File)
    }

    /// The size of the file at `path`, in bytes.
    #[must_use]
    pub fn size(&self, path: &str) -> Option<u64> {
        self.get(path)
            .filter(|node| node.kind == Kind::File)
            .map(|node| node.size)
    }

    /// Names of the directories in `path`, in order; `None` when `path` is no directory. The root is `""`.
    #[must_use]
    pub fn directories(&self, path: &str) -> Option<Vec<&str>> {
        self.children(path, Kind::Directory)
    }

    /// Names of the regular files in `path`, in order; `None` when `path` is no directory.
    #[must_use]
    pub fn files(&self, path: &str) -> Option<Vec<&str>> {
        self.children(path, Kind::File)
    }

    /// Everything below the directory `path`, parents before children, names in order.
    #[must_use]
    pub fn below(&self, path: &str) -> &[Node] {
        self.number(path).map_or(&[], |number| self.below_number(number))
    }

    /// The same without what lies below a link.
    pub(crate) fn below_without_links(&self, path: &str) -> impl Iterator<Item = &Node> {
        let mut rest = self.below(path).iter();
        std::iter::from_fn(move || {
            let node = rest.next()?;
            if node.link && node.below > 0 {
                rest.nth(node.below - 1);
            }
            Some(node)
        })
    }

    /// The size of all files below the directory `path`, in bytes.
    pub(crate) fn size_below(&self, path: &str) -> u64 {
        let sizes = self.below(path).iter().map(|node| node.size);
        sizes.fold(0, u64::saturating_add)
    }

    /// Opens the regular file at `path`.
    ///
    /// # Errors
    /// As the system says; `NotFound` when no regular file lies there.
    pub fn open(&self, path: &str) -> io::Result<File> {
        let node = self
            .get(path)
            .filter(|node| node.kind == Kind::File)
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no regular file"))?;
        let links = if node.link { Links::Follow } else { Links::Refuse };
        self.top.file(node.on_disk(), links)
    }

    /// The contents of the file at `path`, at most `limit` bytes.
    ///
    /// # Errors
    /// As [`Tree::open`]; also when the file is longer than `limit`.
    pub fn read(&self, path: &str, limit: u64) -> io::Result<Vec<u8>> {
        // Room for all of it at once, and for the byte that would be too many.
        let capacity = self.size(path).unwrap_or(0).min(limit) + 1;
        let mut bytes = Vec::with_capacity(usize::try_from(capacity).unwrap_or_default());
        self.open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit {
            return Err(io::Error::other(format!("longer than {limit} bytes")));
        }
        Ok(bytes)
    }

    /// Names in a directory; its children are found by leaving out what lies below each of them.
    fn children(&self, path: &str, kind: Kind) -> Option<Vec<&str>> {
        let number = self.number(path)?;
        self.nodes
            .get(number)
            .filter(|node| node.kind == Kind::Directory)?;
        let mut names = Vec::new();
        let mut rest = self.below_number(number);
        while let Some((node, after)) = rest.split_first() {
            names.extend((node.kind == kind).then(|| node.name()));
            rest = after.get(node.below..).unwrap_or_default();
        }
        Some(names)
    }

    fn number(&self, path: &str) -> Option<usize> {
        self.index.find(&self.nodes, path.trim_end_matches('/'))
    }

    fn below_number(&self, number: usize) -> &[Node] {
        let count = self.nodes.get(number).map_or(0, |node| node.below);
        self.nodes.get(number + 1..number + 1 + count).unwrap_or_default()
    }
}
