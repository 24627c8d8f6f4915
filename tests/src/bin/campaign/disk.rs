//! The two disks: a small tmpfs each, which can be made exactly as small as what lies on it, and a FUSE mount over the
//! runs that takes a few hundred kilobytes a second. They go with the mount namespace of this process.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;

use crate::shell;

/// Room for the runs of one lab.
const SIZE: &str = "size=256m";

/// One side's disk.
#[derive(Debug)]
pub(crate) struct Disk {
    /// Where it is mounted.
    root: PathBuf,
    /// The directory of the runs on it.
    runs: PathBuf,
}

impl Disk {
    /// Mounts an empty disk at `root` with a directory `runs` on it.
    ///
    /// # Errors
    /// When it cannot be mounted.
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

    /// Where it is mounted.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Not a byte more fits.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(crate) fn fill(&self) -> anyhow::Result<()> {
        let mut refused = Ok(());
        // What grows between looking and mounting makes the kernel refuse.
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

    /// There is room again.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(crate) fn free_space(&self) -> anyhow::Result<()> {
        self.resize(SIZE)
    }

    fn resize(&self, size: &str) -> anyhow::Result<()> {
        let options = format!("remount,{size}");
        shell::succeed(shell::command("mount")?.args(["-o", &options]).arg(&self.root)).map(drop)
    }

    /// Runs that are opened from now on take `kilobytes` a second.
    ///
    /// # Errors
    /// When it cannot be mounted.
    pub(crate) fn slow_down(&self, kilobytes: i64) -> anyhow::Result<()> {
        let mut bindfs = shell::command("bindfs")?;
        // Files that are open on the disk itself go on growing there: nothing may be remembered of them here.
        bindfs.args(["-o", "attr_timeout=0,entry_timeout=0,direct_io"]);
        bindfs
            .arg(format!("--write-rate={kilobytes}k"))
            .arg(&self.runs)
            .arg(&self.runs);
        shell::succeed(&mut bindfs).map(drop)
    }

    /// The disk is as quick as before. Who has files open keeps the slow ones.
    ///
    /// # Errors
    /// When it cannot be unmounted.
    pub(crate) fn speed_up(&self) -> anyhow::Result<()> {
        shell::succeed(shell::command("umount")?.arg("--lazy").arg(&self.runs)).map(drop)
    }
}
