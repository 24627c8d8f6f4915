//! The two disks. Each is a small tmpfs that can be shrunk to its content, with a FUSE mount that limits the write rate of the runs. They
//! end with this process's mount namespace.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;

use crate::shell;

/// The size of each disk, enough for the runs of one lab.
const SIZE: &str = "size=256m";

/// The disk of one side.
#[derive(Debug)]
pub(crate) struct Disk {
    /// The mount point.
    root: PathBuf,
    /// The directory of runs on the disk.
    runs: PathBuf,
}

impl Disk {
    /// Mounts an empty disk at `root` with a directory `runs` on it.
    ///
    /// # Errors
    /// Returns an error when it cannot be mounted.
    pub(crate) fn mount(root: &Path, runs: &str) -> anyhow::Result<Self> {
        fs::create_dir_all(root)?;
        shell::succeed(
            shell::command("mount")?
                .args(["-t", "tmpfs", "-o", SIZE, "none"])
                .arg(root),
        )?;
        let runs = root.join(runs);
        fs::create_dir_all(&runs)?;
        Ok(Self {
            root: root.to_owned(),
            runs,
        })
    }

    /// Returns the mount point.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Fills the disk by shrinking it to its content.
    ///
    /// # Errors
    /// Returns an error when the kernel refuses.
    pub(crate) fn fill(&self) -> anyhow::Result<()> {
        let mut refused = Ok(());
        // The kernel refuses if the content grows between the check and the remount.
        for _ in 0..20 {
            let stat = rustix::fs::statvfs(&self.root)?;
            let used = (stat.f_blocks - stat.f_bfree).max(1) * stat.f_frsize;
            refused = self.resize(&format!("size={used}"));
            if refused.is_ok() {
                break;
            }
        }
        refused.context("the disk cannot be made full")
    }

    /// Restores the disk's size.
    ///
    /// # Errors
    /// Returns an error when the kernel refuses.
    pub(crate) fn free_space(&self) -> anyhow::Result<()> {
        self.resize(SIZE)
    }

    fn resize(&self, size: &str) -> anyhow::Result<()> {
        let options = format!("remount,{size}");
        shell::succeed(shell::command("mount")?.args(["-o", &options]).arg(&self.root)).map(drop)
    }

    /// Limits the write rate of files that are opened from now on to `kilobytes` per second.
    ///
    /// # Errors
    /// Returns an error when the FUSE file system cannot be mounted.
    pub(crate) fn slow_down(&self, kilobytes: i64) -> anyhow::Result<()> {
        let mut bindfs = shell::command("bindfs")?;
        // Files that are open on the disk itself keep growing there, so their attributes must not be cached here.
        bindfs.args(["-o", "attr_timeout=0,entry_timeout=0,direct_io"]);
        bindfs
            .arg(format!("--write-rate={kilobytes}k"))
            .arg(&self.runs)
            .arg(&self.runs);
        shell::succeed(&mut bindfs).map(drop)
    }

    /// Removes the limit for files that are opened from now on. Open files keep it.
    ///
    /// # Errors
    /// Returns an error when the FUSE file system cannot be unmounted.
    pub(crate) fn speed_up(&self) -> anyhow::Result<()> {
        shell::succeed(shell::command("umount")?.arg("--lazy").arg(&self.runs)).map(drop)
    }
}
