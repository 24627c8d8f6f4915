//! A small disk of a fault campaign's lab, which can be made full, slow and free again: a tmpfs that ends with the lab's mount namespace.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;

use crate::shell;

/// The number of attempts to fill a disk to which other processes write.
const ATTEMPTS: usize = 20;

/// A mounted disk.
#[derive(Debug)]
pub struct LabDisk {
    /// The mount point.
    root: PathBuf,
    mib: u64,
}

impl LabDisk {
    /// Mounts an empty disk of `mib` MiB at `root` that every user can read.
    ///
    /// # Errors
    /// Returns an error when it cannot be mounted.
    pub fn mount(root: &Path, mib: u64) -> anyhow::Result<Self> {
        fs::create_dir_all(root)?;
        shell::succeed(
            shell::command("mount")?
                .args(["-t", "tmpfs", "-o", &format!("mode=755,size={mib}m"), "none"])
                .arg(root),
        )?;
        Ok(Self {
            root: root.to_owned(),
            mib,
        })
    }

    /// Returns the mount point.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Fills the disk by shrinking it to its content.
    ///
    /// # Errors
    /// Returns an error when the kernel refuses each time.
    pub fn fill(&self) -> anyhow::Result<()> {
        let mut refused = Ok(());
        // The kernel refuses if the content grows between the check and the remount.
        for _ in 0..ATTEMPTS {
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
    pub fn free_space(&self) -> anyhow::Result<()> {
        self.resize(&format!("size={}m", self.mib))
    }

    /// Limits the write rate of files in a directory on the disk that are opened from now on to `kilobytes` per second.
    ///
    /// # Errors
    /// Returns an error when the FUSE file system cannot be mounted.
    pub fn slow_down(&self, directory: &str, kilobytes: i64) -> anyhow::Result<()> {
        let directory = self.root.join(directory);
        let mut bindfs = shell::command("bindfs")?;
        // Files that are open on the disk itself keep growing there, so their attributes must not be cached here.
        bindfs.args(["-o", "attr_timeout=0,entry_timeout=0,direct_io"]);
        bindfs.arg(format!("--write-rate={kilobytes}k"));
        shell::succeed(bindfs.arg(&directory).arg(&directory)).map(drop)
    }

    /// Removes the limit for files that are opened from now on. Open files keep it. It ends with this process's mount namespace, too.
    ///
    /// # Errors
    /// Returns an error when the FUSE file system cannot be unmounted.
    pub fn speed_up(&self, directory: &str) -> anyhow::Result<()> {
        shell::succeed(
            shell::command("umount")?
                .arg("--lazy")
                .arg(self.root.join(directory)),
        )
        .map(drop)
    }

    fn resize(&self, size: &str) -> anyhow::Result<()> {
        let options = format!("remount,{size}");
        shell::succeed(shell::command("mount")?.args(["-o", &options]).arg(&self.root)).map(drop)
    }
}
