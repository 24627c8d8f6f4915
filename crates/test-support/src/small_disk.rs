//! A small tmpfs that tests can fill. Mounting requires root. Without root, a test is skipped.

use std::{fs, path::PathBuf, process::Command};

use regatta_test_requirements::{Requirement, skip};

/// A mounted tmpfs, unmounted when dropped.
pub struct SmallDisk {
    /// The mount point.
    pub path: PathBuf,
    _directory: tempfile::TempDir,
}

impl SmallDisk {
    /// Mounts a tmpfs of this size, for example `2m`. Records a skipped test when mounting fails.
    pub fn mount(size: &str) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("disk");
        fs::create_dir(&path).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "none"])
            .arg(&path)
            .status()
            .is_ok_and(|status| status.success());
        if !mounted {
            skip(Requirement::Right, "mounting a tmpfs needs root");
            return None;
        }
        Some(Self {
            path,
            _directory: directory,
        })
    }

    /// Fills the disk until about `left` bytes are free.
    pub fn fill_up_to(&self, left: u64) {
        let disk = rustix::fs::statvfs(&self.path).unwrap();
        let filler = vec![0; usize::try_from(disk.f_bavail * disk.f_frsize - left).unwrap()];
        fs::write(self.path.join("filler"), filler).unwrap();
    }

    /// Leaves no byte free.
    pub fn fill(&self) {
        let written = fs::write(self.path.join("filler"), vec![0; 4 << 20]);
        assert!(written.is_err(), "the disk is smaller than that");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.path).status();
    }
}
