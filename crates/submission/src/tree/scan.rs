//! The walk that makes a [`Tree`].

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
};

use super::{Kind, Node, Tree};

/// Entries beyond this are not walked: no submission has as many, and memory stays bounded.
const MOST_ENTRIES: usize = 4_000_000;
/// Directories deeper than this are not walked; a submission needs nine levels.
const DEEPEST: usize = 64;

/// A root that cannot be walked.
#[derive(Debug, thiserror::Error)]
#[error("the submission tree {} cannot be listed", root.display())]
pub struct ScanError {
    root: PathBuf,
    #[source]
    source: io::Error,
}

/// Walks below `root`.
pub(super) fn scan(root: &Path) -> Result<Tree, ScanError> {
    // The root is asked first, so that a wrong path is an error and not an empty tree.
    fs::read_dir(root).map_err(|source| ScanError {
        root: root.to_owned(),
        source,
    })?;
    let mut walk = Walk {
        nodes: vec![Node {
            path: String::new(),
            kind: Kind::Directory,
            size: 0,
            link: false,
            closed: false,
            children: Vec::new(),
            raw: None,
        }],
        faults: Vec::new(),
        full: false,
    };
    walk.directory(0, root, Place::default());
    let by_path = walk
        .nodes
        .iter()
        .enumerate()
        .map(|(index, node)| (node.path.clone(), index))
        .collect::<HashMap<_, _>>();
    Ok(Tree {
        root: root.to_owned(),
        nodes: walk.nodes,
        by_path,
        faults: walk.faults,
    })
}

/// How deep the walk is, and whether it already went through a link.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    depth: usize,
    linked: bool,
}

struct Walk {
    nodes: Vec<Node>,
    faults: Vec<(String, String)>,
    full: bool,
}

impl Walk {
    fn directory(&mut self, index: usize, on_disk: &Path, place: Place) {
        let parent = self.nodes[index].path.clone();
        if place.depth > DEEPEST {
            self.close(index, "deeper than any submission needs; not looked into");
            return;
        }
        let entries = match fs::read_dir(on_disk) {
            Ok(entries) => entries,
            Err(error) => return self.close(index, &error.to_string()),
        };
        // Asked for while the directory is open: the system need not look for it again by its whole path.
        let mut names: Vec<_> = entries
            .flatten()
            .map(|entry| (entry.file_name(), entry.metadata()))
            .collect();
        names.sort_by(|(one, _), (other, _)| one.cmp(other));
        for (name, own) in names {
            if self.nodes.len() >= MOST_ENTRIES {
                if !self.full {
                    self.full = true;
                    self.close(index, "the tree has too many entries; the rest is not looked at");
                }
                return;
            }
            let text = name.to_string_lossy();
            let path = if parent.is_empty() {
                text.clone().into_owned()
            } else {
                format!("{parent}/{text}")
            };
            let file = on_disk.join(&name);
            let raw = (name.to_str().is_none() || self.nodes[index].raw.is_some()).then(|| file.clone());
            self.entry(index, Entry { path, file, raw, own }, place);
        }
    }

    fn entry(&mut self, parent: usize, entry: Entry, place: Place) {
        let Entry { path, file, raw, own } = entry;
        let link = own.as_ref().is_ok_and(fs::Metadata::is_symlink);
        let (kind, size) = match if link { fs::metadata(&file) } else { own } {
            Ok(data) if data.is_dir() => (Kind::Directory, 0),
            Ok(data) if data.is_file() => (Kind::File, data.len()),
            Ok(_) => (Kind::Special, 0),
            Err(_) if link => (Kind::BrokenLink, 0),
            Err(error) => {
                self.faults.push((path, error.to_string()));
                return;
            }
        };
        let index = self.nodes.len();
        self.nodes.push(Node {
            path,
            kind,
            size,
            link,
            closed: false,
            children: Vec::new(),
            raw,
        });
        self.nodes[parent].children.push(index);
        if kind != Kind::Directory {
            return;
        }
        // One link deep is enough for what submitters do, and no number of links can then make the walk endless.
        if link && (place.linked || leads_upwards(&file)) {
            self.close(
                index,
                "a link to a directory within a linked or enclosing directory",
            );
            return;
        }
        let place = Place {
            depth: place.depth + 1,
            linked: place.linked || link,
        };
        self.directory(index, &file, place);
    }

    fn close(&mut self, index: usize, reason: &str) {
        self.nodes[index].closed = true;
        let path = self.nodes[index].path.clone();
        self.faults.push((path, reason.to_owned()));
    }
}

struct Entry {
    path: String,
    file: PathBuf,
    raw: Option<PathBuf>,
    /// Of the entry itself, links not followed.
    own: io::Result<fs::Metadata>,
}

/// Whether the link at `file` leads to a directory that encloses it.
pub(crate) fn leads_upwards(file: &Path) -> bool {
    let enclosing = file.parent().and_then(|parent| parent.canonicalize().ok());
    match (file.canonicalize(), enclosing) {
        (Ok(target), Some(enclosing)) => enclosing.starts_with(target),
        _ => true,
    }
}
