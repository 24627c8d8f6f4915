//! A small disk of a lab that can be made full and free again: a tmpfs that ends with the lab's mount namespace.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use regatta_tests::shell;

/// Room for the sessions of a lab, with the free space that the checks before a session want.
const SIZE: &str = "size=700m";

pub(crate) struct Disk(PathBuf);

impl Disk {
    /// Mounts an empty disk that every user can read.
    ///
    /// # Errors
    /// Returns an error when the kernel refuses.
    pub(crate) fn mount(root: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(root)?;
        shell::succeed(
            Command::new("mount")
                .args(["-t", "tmpfs", "-o"])
                .arg(format!("mode=755,{SIZE}"))
                .arg("none")
                .arg(root),
        )?;
        Ok(Self(root.to_owned()))
    }

    /// Shrinks the disk to its used size. Other processes write meanwhile, so it is tried again.
    ///
    /// # Errors
    /// Returns an error when the kernel refuses each time.
    pub(crate) fn fill(&self) -> anyhow::Result<()> {
        let mut result = Ok(());
        for _ in 0..20 {
            let disk = rustix::fs::statvfs(&self.0)?;
            let used = (disk.f_blocks - disk.f_bfree) * disk.f_frsize;
            result = self.resize(&format!("size={used}"));
            if result.is_ok() {
                break;
            }
        }
        result
    }

    /// Restores the disk's size.
    ///
    /// # Errors
    /// Returns an error when the kernel refuses.
    pub(crate) fn free(&self) -> anyhow::Result<()> {
        self.resize(SIZE)
    }

    fn resize(&self, size: &str) -> anyhow::Result<()> {
        shell::succeed(
            Command::new("mount")
                .args(["-o", &format!("remount,{size}")])
                .arg(&self.0),
        )
        .map(drop)
    }
}
