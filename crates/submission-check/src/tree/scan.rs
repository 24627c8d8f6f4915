//! Scans directories to build a [`Tree`](super::Tree).
//!
//! The directories of one depth are listed in parallel on all processors. The results are then put into the order of the tree.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
};

use super::node::{Kind, Node};
use crate::{
    files::{Directory, EntryType, Links},
    parallel,
};

/// The greatest number of entries that are scanned, which bounds memory. Submissions have fewer.
const MAX_ENTRIES: usize = 4_000_000;
/// The greatest depth that is scanned. A submission needs nine levels.
const MAX_DEPTH: usize = 64;
/// The number of directories that a thread lists at a time.
const CHUNK: usize = 64;

/// The error if the root cannot be listed.
#[derive(Debug, thiserror::Error)]
#[error("the submission tree {} cannot be listed", root.display())]
pub struct ScanError {
    root: PathBuf,
    #[source]
    source: io::Error,
}

/// A path that could not be scanned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanFault {
    /// The path relative to the root.
    pub path: String,
    /// The reason.
    pub reason: String,
}

/// The result of a scan.
pub(super) struct ScannedTree {
    /// The open root directory.
    pub(super) top: Directory,
    /// The nodes; each directory is followed by everything below it.
    pub(super) nodes: Vec<Node>,
    /// Paths that could not be scanned, with the reasons.
    pub(super) faults: Vec<ScanFault>,
}

/// Scans the tree below `root`.
pub(super) fn scan(root: &Path) -> Result<ScannedTree, ScanError> {
    let failed = |source| ScanError {
        root: root.to_owned(),
        source,
    };
    let top = Directory::open(root).map_err(failed)?;
    // The root is listed first, so that a wrong path is an error and not an empty tree.
    top.entries().map_err(failed)?;
    let listings = TreeWalk { root, top: &top }.listings();
    let mut flat = Flat {
        listings,
        nodes: vec![Node::root()],
        faults: Vec::new(),
        is_full: false,
    };
    flat.directory(0, 0);
    Ok(ScannedTree {
        top,
        nodes: flat.nodes,
        faults: flat.faults,
    })
}

/// A directory that is to be listed.
struct Pending {
    /// The path relative to the root.
    path: PathBuf,
    /// Whether a link leads to it or to a directory above it.
    is_linked: bool,
    links: Links,
}

/// The entries of a directory.
#[derive(Default)]
struct Listing {
    entries: Vec<TreeEntry>,
    /// The reason why the directory was not listed.
    closed: Option<String>,
}

impl Listing {
    fn closed(reason: String) -> Self {
        Self {
            entries: Vec::new(),
            closed: Some(reason),
        }
    }
}

struct TreeEntry {
    name: OsString,
    found: io::Result<Found>,
}

struct Found {
    kind: Kind,
    size: u64,
    is_link: bool,
    contents: Contents,
}

/// The state of an entry's contents.
enum Contents {
    /// The entry is not a directory.
    Nothing,
    /// The directory is not listed, because a link leads to it from within a linked or enclosing directory.
    Closed,
    /// The directory is to be listed.
    Unlisted,
    /// The index of the directory's listing.
    Listed(usize),
}

struct TreeWalk<'a> {
    root: &'a Path,
    top: &'a Directory,
}

impl TreeWalk<'_> {
    /// Returns the listings of all directories, the root's first.
    fn listings(&self) -> Vec<Listing> {
        let mut listings = Vec::new();
        let mut entries = 0;
        let mut level = vec![Pending {
            path: PathBuf::new(),
            is_linked: false,
            links: Links::Follow,
        }];
        for _ in 0..=MAX_DEPTH {
            let mut next = Vec::new();
            let first = listings.len() + level.len();
            for (pending, mut listing) in level.iter().zip(self.level(&level)) {
                entries += listing.entries.len();
                for entry in &mut listing.entries {
                    number(pending, entry, first, &mut next);
                }
                listings.push(listing);
            }
            level = next;
            if entries > MAX_ENTRIES {
                break;
            }
        }
        let is_full = entries > MAX_ENTRIES;
        listings.extend(level.iter().map(|_| match is_full {
            // The limit is reported once, at the place where the scan ends.
            true => Listing::default(),
            false => Listing::closed("deeper than any submission needs; not checked".to_owned()),
        }));
        listings
    }

    fn level(&self, level: &[Pending]) -> impl Iterator<Item = Listing> {
        let chunks: Vec<_> = level.chunks(CHUNK).collect();
        let list = |chunk: &&[Pending]| chunk.iter().map(|pending| self.list(pending)).collect();
        parallel::map(&chunks, |_| 0, list)
            .into_iter()
            .flat_map(|listings: Vec<_>| listings)
    }

    fn list(&self, pending: &Pending) -> Listing {
        let listed = self
            .top
            .directory(&pending.path, pending.links)
            .and_then(|directory| Ok((directory.entries()?, directory)));
        let (entries, directory) = match listed {
            Ok(listed) => listed,
            Err(error) => return Listing::closed(error.to_string()),
        };
        let entries = entries.into_iter().map(|entry| TreeEntry {
            found: entry
                .entry_type
                .and_then(|entry_type| self.found(pending, &directory, Path::new(&entry.name), entry_type)),
            name: entry.name,
        });
        Listing {
            entries: entries.collect(),
            closed: None,
        }
    }

    fn found(
        &self,
        pending: &Pending,
        directory: &Directory,
        name: &Path,
        entry_type: EntryType,
    ) -> io::Result<Found> {
        let is_link = entry_type == EntryType::Link;
        let (entry_type, size) = match entry_type {
            EntryType::Link => directory
                .look_at(name, Links::Follow)
                .unwrap_or((EntryType::Link, 0)),
            EntryType::File => directory.look_at(name, Links::Refuse)?,
            EntryType::Directory | EntryType::Special => (entry_type, 0),
        };
        let kind = match entry_type {
            EntryType::Directory => Kind::Directory,
            EntryType::File => Kind::File,
            EntryType::Link => Kind::BrokenLink,
            EntryType::Special => Kind::Special,
        };
        // Following one level of links suffices for real submissions, and guarantees that the scan ends.
        let closed =
            || is_link && (pending.is_linked || leads_upwards(&self.root.join(&pending.path).join(name)));
        let contents = match kind {
            Kind::Directory if closed() => Contents::Closed,
            Kind::Directory => Contents::Unlisted,
            _ => Contents::Nothing,
        };
        Ok(Found {
            kind,
            size: if kind == Kind::File { size } else { 0 },
            is_link,
            contents,
        })
    }
}

/// Adds a directory to those that are listed next. The first of them gets the index `first`.
fn number(parent: &Pending, entry: &mut TreeEntry, first: usize, next: &mut Vec<Pending>) {
    if let Ok(found) = &mut entry.found
        && matches!(found.contents, Contents::Unlisted)
    {
        found.contents = Contents::Listed(first + next.len());
        next.push(Pending {
            path: parent.path.join(&entry.name),
            is_linked: parent.is_linked || found.is_link,
            links: if found.is_link {
                Links::Follow
            } else {
                Links::Refuse
            },
        });
    }
}

/// The nodes in the order of the tree.
struct Flat {
    listings: Vec<Listing>,
    nodes: Vec<Node>,
    faults: Vec<ScanFault>,
    is_full: bool,
}

impl Flat {
    /// Adds the entries of the directory `parent`.
    fn directory(&mut self, parent: usize, listing: usize) {
        let Some(listing) = self.listings.get_mut(listing).map(std::mem::take) else {
            return;
        };
        if let Some(reason) = &listing.closed {
            self.close(parent, reason);
        }
        for entry in listing.entries {
            if self.nodes.len() >= MAX_ENTRIES {
                if !self.is_full {
                    self.is_full = true;
                    self.close(parent, "the tree has too many entries; the rest is not checked");
                }
                break;
            }
            self.entry(parent, entry);
        }
        self.nodes[parent].below = self.nodes.len() - parent - 1;
    }

    fn entry(&mut self, parent: usize, entry: TreeEntry) {
        let above = &self.nodes[parent];
        let name = entry.name.to_string_lossy();
        let (path, name_start) = match above.path.as_str() {
            "" => (name.into_owned(), 0),
            above => (format!("{above}/{name}"), above.len() + 1),
        };
        let is_text = above.raw.is_none() && entry.name.to_str().is_some();
        let raw = (!is_text).then(|| above.on_disk().join(&entry.name));
        let found = match entry.found {
            Ok(found) => found,
            Err(error) => {
                let reason = error.to_string();
                return self.faults.push(ScanFault { path, reason });
            }
        };
        let number = self.nodes.len();
        self.nodes.push(Node {
            path,
            kind: found.kind,
            size: found.size,
            link: found.is_link,
            closed: false,
            name_start,
            below: 0,
            raw,
        });
        match found.contents {
            Contents::Listed(listing) => self.directory(number, listing),
            Contents::Closed => self.close(
                number,
                "a link to a directory within a linked or enclosing directory",
            ),
            Contents::Nothing | Contents::Unlisted => {}
        }
    }

    fn close(&mut self, number: usize, reason: &str) {
        self.nodes[number].closed = true;
        let path = self.nodes[number].path.clone();
        let reason = reason.to_owned();
        self.faults.push(ScanFault { path, reason });
    }
}

/// Returns whether the link at `file` leads to a directory that contains it.
pub fn leads_upwards(file: &Path) -> bool {
    let enclosing = file.parent().and_then(|parent| parent.canonicalize().ok());
    match (file.canonicalize(), enclosing) {
        (Ok(target), Some(enclosing)) => enclosing.starts_with(target),
        _ => true,
    }
}
