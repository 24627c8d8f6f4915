//! Finds the workspace of a command that does not name one: the current directory, a directory around it, or the only one directly below it. Nothing
//! is remembered between commands, so the current directory alone determines which lab a command uses (docs/decisions/0003).

use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use regatta_lab_store::workspace::CONFIG_FILE;
use rustix::process::geteuid;

/// The maximum number of directory entries to search. A directory with more entries, such as one with samples, is unlikely to contain a lab.
const MAX_ENTRIES: usize = 1_000;

/// The workspaces that are found from a directory.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WorkspaceSearch {
    /// The directory itself.
    Here,
    /// A directory around it, or the only workspace directly below it.
    Found(PathBuf),
    /// Several workspaces directly below it.
    Several(Vec<PathBuf>),
    Nothing,
}

/// Searches from `directory`, which is `.` for the current one. Paths below it are returned relative to it.
pub(super) fn search(directory: &Path) -> WorkspaceSearch {
    if directory.join(CONFIG_FILE).is_file() {
        return WorkspaceSearch::Here;
    }
    if let Some(around) = around(directory) {
        return WorkspaceSearch::Found(around);
    }
    let mut below = below(directory);
    match below.len() {
        0 => WorkspaceSearch::Nothing,
        1 => WorkspaceSearch::Found(below.remove(0)),
        _ => WorkspaceSearch::Several(below),
    }
}

fn around(directory: &Path) -> Option<PathBuf> {
    let absolute = fs::canonicalize(directory).ok()?;
    let found = absolute.ancestors().skip(1).find(|path| is_own(path));
    found.map(Path::to_owned)
}

fn below(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let names: io::Result<Vec<_>> = entries
        .take(MAX_ENTRIES + 1)
        .map(|entry| Ok(PathBuf::from(entry?.file_name())))
        .collect();
    let Some(names) = names.ok().filter(|names| names.len() <= MAX_ENTRIES) else {
        return Vec::new();
    };
    let mut found: Vec<PathBuf> = names
        .into_iter()
        .filter(|name| is_own(&directory.join(name)))
        .collect();
    found.sort();
    found
}

/// Returns whether a directory is a workspace of this user. In directories that others can write to, such as `/tmp`, another user's workspace would
/// otherwise determine the coordinator to which commands connect.
fn is_own(directory: &Path) -> bool {
    let config = fs::metadata(directory.join(CONFIG_FILE));
    config.is_ok_and(|config| config.is_file() && config.uid() == geteuid().as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lab(path: &Path) {
        fs::create_dir_all(path).unwrap();
        fs::write(path.join(CONFIG_FILE), "").unwrap();
    }

    #[test]
    fn a_workspace_is_found_here_around_or_directly_below() {
        let directory = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        assert_eq!(search(&root), WorkspaceSearch::Nothing);
        lab(&root.join("lab"));
        assert_eq!(search(&root), WorkspaceSearch::Found("lab".into()));
        assert_eq!(search(&root.join("lab")), WorkspaceSearch::Here);
        let inside = root.join("lab/runs/1");
        fs::create_dir_all(&inside).unwrap();
        assert_eq!(search(&inside), WorkspaceSearch::Found(root.join("lab")));
        lab(&root.join("another"));
        let several = vec!["another".into(), "lab".into()];
        assert_eq!(search(&root), WorkspaceSearch::Several(several));
    }

    #[test]
    fn a_crowded_directory_is_not_searched() {
        let directory = tempfile::tempdir().unwrap();
        lab(&directory.path().join("lab"));
        for number in 0..MAX_ENTRIES {
            fs::write(directory.path().join(number.to_string()), "").unwrap();
        }
        assert_eq!(search(directory.path()), WorkspaceSearch::Nothing);
    }
}
