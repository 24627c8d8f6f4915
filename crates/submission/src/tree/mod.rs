//! A submission tree as it was found: one walk, then look-ups in memory.
//!
//! Trees come from strangers. Links that lead in circles, names that are no text, sockets and pipes are all recorded as
//! what they are; nothing but regular files is ever opened. Contents are not this module's business.

mod node;
mod scan;

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

pub use node::{Kind, Node};
pub use scan::ScanError;
pub(crate) use scan::leads_upwards;

/// A directory tree, indexed by paths relative to its root, with `/` between names.
#[derive(Debug)]
pub struct Tree {
    root: PathBuf,
    nodes: Vec<Node>,
    by_path: std::collections::HashMap<String, usize>,
    faults: Vec<(String, String)>,
}

impl Tree {
    /// Walks the tree below `root`.
    ///
    /// # Errors
    /// When `root` itself cannot be listed. Anything below it that cannot is kept in [`Tree::faults`].
    pub fn scan(root: &Path) -> Result<Self, ScanError> {
        scan::scan(root)
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
        self.by_path
            .get(path.trim_end_matches('/'))
            .and_then(|&index| self.nodes.get(index))
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

    /// Everything below the directory `path`.
    pub fn below<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a Node> {
        let start = self.by_path.get(path).copied();
        start
            .into_iter()
            .flat_map(move |start| self.nodes.iter().skip(start + 1))
            .take_while(move |node| {
                node.path
                    .strip_prefix(path)
                    .is_some_and(|rest| rest.starts_with('/'))
            })
    }

    /// The size of all files below the directory `path`, in bytes.
    pub(crate) fn size_below(&self, path: &str) -> u64 {
        self.below(path)
            .fold(0, |sum: u64, node| sum.saturating_add(node.size))
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
        let file = File::open(self.on_disk(node))?;
        // Between the walk and now the file may have become something that blocks or never ends.
        if file.metadata()?.is_file() {
            Ok(file)
        } else {
            Err(io::Error::other("no longer a regular file"))
        }
    }

    /// The contents of the file at `path`, at most `limit` bytes.
    ///
    /// # Errors
    /// As [`Tree::open`]; also when the file is longer than `limit`.
    pub fn read(&self, path: &str, limit: u64) -> io::Result<Vec<u8>> {
        // Room for all of it at once, and for the byte that would be too many.
        let room = self.size(path).unwrap_or(0).min(limit) + 1;
        let mut bytes = Vec::with_capacity(usize::try_from(room).unwrap_or_default());
        self.open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit {
            return Err(io::Error::other(format!("longer than {limit} bytes")));
        }
        Ok(bytes)
    }

    fn children(&self, path: &str, kind: Kind) -> Option<Vec<&str>> {
        let children = match path.trim_end_matches('/') {
            "" => self.roots(),
            path => {
                let node = self.get(path).filter(|node| node.kind == Kind::Directory)?;
                &node.children
            }
        };
        let nodes = children.iter().filter_map(|&index| self.nodes.get(index));
        Some(nodes.filter(|node| node.kind == kind).map(Node::name).collect())
    }

    fn roots(&self) -> &[usize] {
        self.nodes.first().map_or(&[], |root| &root.children)
    }

    fn on_disk(&self, node: &Node) -> PathBuf {
        match &node.raw {
            Some(raw) => raw.clone(),
            None => self.root.join(&node.path),
        }
    }
}
