//! The workspace's directory, held open. A path only names a place: somebody may rename the directory while a daemon serves it, and a daemon
//! that continues to write at the former path would split the lab.

use std::{
    fs::{self, File, Metadata},
    io,
    os::{fd::AsRawFd as _, unix::fs::MetadataExt as _},
    path::{Path, PathBuf},
};

/// An open directory.
#[derive(Debug)]
pub(super) struct HeldDirectory {
    directory: File,
    identity: Identity,
}

/// Identifies a directory while it is held open: device and inode.
#[derive(Debug, PartialEq, Eq)]
struct Identity(u64, u64);

impl Identity {
    fn of(metadata: &Metadata) -> Self {
        Self(metadata.dev(), metadata.ino())
    }
}

impl HeldDirectory {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let directory = File::open(path)?;
        let identity = Identity::of(&directory.metadata()?);
        Ok(Self { directory, identity })
    }

    /// Returns whether a path leads to this directory.
    pub(super) fn is_at(&self, path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|found| Identity::of(&found) == self.identity)
    }

    /// Returns the directory's present path. `None` when it was deleted, or on a system without `/proc`.
    pub(super) fn present_path(&self) -> Option<PathBuf> {
        let path = fs::read_link(format!("/proc/self/fd/{}", self.directory.as_raw_fd())).ok()?;
        self.is_at(&path).then_some(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renamed_replaced_or_deleted_directory_is_noticed() {
        let parent = tempfile::tempdir().unwrap();
        let [lab, moved] = ["lab", "moved"].map(|name| parent.path().join(name));
        fs::create_dir(&lab).unwrap();
        let held = HeldDirectory::open(&lab).unwrap();
        assert!(held.is_at(&lab));
        fs::rename(&lab, &moved).unwrap();
        assert!(!held.is_at(&lab) && held.present_path().unwrap().ends_with("moved"));
        fs::create_dir(&lab).unwrap();
        assert!(!held.is_at(&lab), "another directory of the same name");
        fs::remove_dir(&moved).unwrap();
        assert_eq!(held.present_path(), None);
    }
}
