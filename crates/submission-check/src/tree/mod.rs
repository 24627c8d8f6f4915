//! A submission tree: one scan of the directories, then lookups in memory.
//!
//! Trees come from untrusted sources. Circular links, names that are not UTF-8, sockets and pipes are recorded. Only regular
//! files are ever opened. This module does not interpret contents.

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
pub use scan::{ScanError, ScanFault, leads_upwards};

/// A directory tree, indexed by paths relative to its root, with `/` between names.
#[derive(Debug)]
pub struct Tree {
    root: PathBuf,
    /// The open root directory; files are opened relative to it.
    top: Directory,
    /// The nodes; each directory is followed by everything below it.
    nodes: Vec<Node>,
    index: Index,
    faults: Vec<ScanFault>,
}

impl Tree {
    /// Scans the tree below `root`.
    ///
    /// # Errors
    /// Returns an error if `root` itself cannot be listed. [`Tree::faults`] has the entries below it that cannot be read.
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

    /// Removes all submitters but one, as if they were not in the tree. `divisions` are the directories that hold submitters.
    #[must_use]
    pub fn only_submitter(self, submitter: &str, divisions: &[&str]) -> Self {
        let is_other = |path: &str| {
            let mut parts = path.split('/');
            let division = parts.next().is_some_and(|division| divisions.contains(&division));
            division && parts.next().is_some_and(|name| name != submitter)
        };
        // Files beside the submitters remain.
        let removed: Vec<_> = self
            .nodes
            .iter()
            .filter(|node| {
                node.kind == Kind::Directory && is_other(&node.path) && node.path.matches('/').count() == 1
            })
            .map(|node| (node.path.clone(), node.below + 1))
            .collect();
        let below = |path: &str, home: &str| {
            path == home || path.strip_prefix(home).is_some_and(|rest| rest.starts_with('/'))
        };
        let is_removed = |path: &str| removed.iter().any(|(home, _)| below(path, home));
        let mut nodes: Vec<_> = self
            .nodes
            .into_iter()
            .filter(|node| !is_removed(&node.path))
            .collect();
        for node in &mut nodes {
            let gone = removed.iter().filter(|(home, _)| {
                node.path.is_empty()
                    || home
                        .split_once('/')
                        .is_some_and(|(division, _)| division == node.path)
            });
            node.below -= gone.map(|(_, count)| count).sum::<usize>();
        }
        Self {
            index: Index::of(&nodes),
            nodes,
            faults: self
                .faults
                .into_iter()
                .filter(|fault| !is_removed(&fault.path))
                .collect(),
            ..self
        }
    }

    /// Returns the root directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the paths that could not be scanned, with the reasons.
    #[must_use]
    pub fn faults(&self) -> &[ScanFault] {
        &self.faults
    }

    /// Returns everything below the root, parents before children, in name order.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Returns the node at `path`.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&Node> {
        self.nodes.get(self.number(path)?)
    }

    /// Returns whether `path` exists. A broken link does not count.
    #[must_use]
    pub fn exists(&self, path: &str) -> bool {
        self.get(path).is_some_and(|node| node.kind != Kind::BrokenLink)
    }

    /// Returns whether `path` is a directory or a link to one.
    #[must_use]
    pub fn is_directory(&self, path: &str) -> bool {
        self.get(path).is_some_and(|node| node.kind == Kind::Directory)
    }

    /// Returns whether `path` is a regular file or a link to one.
    #[must_use]
    pub fn is_file(&self, path: &str) -> bool {
        self.get(path).is_some_and(|node| node.kind == Kind::File)
    }

    /// Returns the size of the file at `path` in bytes.
    #[must_use]
    pub fn size(&self, path: &str) -> Option<u64> {
        self.get(path)
            .filter(|node| node.kind == Kind::File)
            .map(|node| node.size)
    }

    /// Returns the names of the directories in `path` in order, or `None` if `path` is not a directory. The root is `""`.
    #[must_use]
    pub fn directories(&self, path: &str) -> Option<Vec<&str>> {
        self.children(path, Kind::Directory)
    }

    /// Returns the names of the regular files in `path` in order, or `None` if `path` is not a directory.
    #[must_use]
    pub fn files(&self, path: &str) -> Option<Vec<&str>> {
        self.children(path, Kind::File)
    }

    /// Returns everything below the directory `path`, parents before children, in name order.
    #[must_use]
    pub fn below(&self, path: &str) -> &[Node] {
        self.number(path).map_or(&[], |number| self.below_number(number))
    }

    /// Returns everything below the directory `path`, except the contents of linked directories.
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

    /// Returns the total size of all files below the directory `path`, in bytes.
    pub(crate) fn size_below(&self, path: &str) -> u64 {
        let sizes = self.below(path).iter().map(|node| node.size);
        sizes.fold(0, u64::saturating_add)
    }

    /// Opens the regular file at `path`.
    ///
    /// # Errors
    /// Returns the system's error, or `NotFound` if `path` is not a regular file.
    pub fn open(&self, path: &str) -> io::Result<File> {
        let node = self
            .get(path)
            .filter(|node| node.kind == Kind::File)
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no regular file"))?;
        let links = if node.link { Links::Follow } else { Links::Refuse };
        self.top.file(node.on_disk(), links)
    }

    /// Returns the contents of the file at `path`, which may have at most `limit` bytes.
    ///
    /// # Errors
    /// Returns the errors of [`Tree::open`], and an error if the file is longer than `limit`.
    pub fn read(&self, path: &str, limit: u64) -> io::Result<Vec<u8>> {
        // The capacity has one byte more, to detect a file that is too long.
        let capacity = self.size(path).unwrap_or(0).min(limit) + 1;
        let mut bytes = Vec::with_capacity(usize::try_from(capacity).unwrap_or_default());
        self.open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit {
            return Err(io::Error::other(format!("longer than {limit} bytes")));
        }
        Ok(bytes)
    }

    /// Returns the names in a directory. Skips the nodes below each child.
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
