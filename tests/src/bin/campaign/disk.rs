//! The two disks. Each can be made full, and has a FUSE mount that limits the write rate of the runs. They end with this process's mount
//! namespace.

use std::{
    fs,
    path::{Path, PathBuf},
};

use regatta_tests::lab_disk::LabDisk;

use crate::shell;

/// The size of each disk in MiB, enough for the runs of one lab.
const SIZE_MIB: u64 = 256;

/// The disk of one side.
#[derive(Debug)]
pub(crate) struct Disk {
    disk: LabDisk,
    /// The directory of runs on the disk.
    runs: PathBuf,
}

impl Disk {
    /// Mounts an empty disk at `root` with a directory `runs` on it.
    ///
    /// # Errors
    /// Returns an error when it cannot be mounted.
    pub(crate) fn mount(root: &Path, runs: &str) -> anyhow::Result<Self> {
        let disk = LabDisk::mount(root, SIZE_MIB)?;
        let runs = root.join(runs);
        fs::create_dir_all(&runs)?;
        Ok(Self { disk, runs })
    }

    /// Returns the mount point.
    pub(crate) fn root(&self) -> &Path {
        self.disk.root()
    }

    /// Fills the disk.
    ///
    /// # Errors
    /// Returns an error when the kernel refuses.
    pub(crate) fn fill(&self) -> anyhow::Result<()> {
        self.disk.fill()
    }

    /// Restores the disk's size.
    ///
    /// # Errors
    /// Returns an error when the kernel refuses.
    pub(crate) fn free_space(&self) -> anyhow::Result<()> {
        self.disk.free_space()
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
