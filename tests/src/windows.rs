//! A fake of a Windows machine with OpenSSH: a real sshd, whose shell, SFTP server and Python behave as those of Windows for Regatta's
//! input.
//!
//! It is a directory `drives` with the link `C:` and with programs whose names have backslashes. It does not simulate Windows' kernel, and the
//! official programs run as on Linux.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    sshd::{Likeness, Sshd},
    succeed_output,
};

/// The login's shell of a Windows machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowsShell {
    /// `cmd.exe`, as OpenSSH has it.
    Cmd,
    /// PowerShell, where the registry's `DefaultShell` names it.
    PowerShell,
}

/// Python's path on the machine.
pub const PYTHON: &str = r"C:\Program Files\Python\python.exe";
/// The path of power-dev.
pub const POWER_DEV: &str = r"C:\power-dev";
/// PTDaemon's path.
pub const PTD: &str = r"C:\PTD\ptd-windows-x86.exe";

/// A fake Windows machine.
pub struct Windows {
    /// Its sshd. The login's directory is `C:\home`.
    pub sshd: Sshd,
    drives: PathBuf,
}

impl Windows {
    /// Starts one with a copy of power-dev. Returns `None` and prints the reason where no sshd can run.
    ///
    /// # Panics
    /// Panics when the server does not start.
    #[must_use]
    pub fn start(shell: WindowsShell, power_dev: &Path) -> Option<Self> {
        let sshd = Sshd::start(Likeness {
            config: "MaxStartups 100\n",
            shell: Some(include_str!("windows/shell.py")),
            programs: &[("taskkill", "exec /bin/kill -KILL -- \"-$4\"")],
            ..Likeness::default()
        })?;
        let place = sshd.shell_directory();
        write_program(&place.join("sftp.py"), include_str!("windows/sftp.py"));
        if shell == WindowsShell::PowerShell {
            fs::write(place.join("PowerShell"), "").expect("the shell's kind");
        }
        let drives = place.join("drives");
        fs::create_dir(&drives).expect("a directory");
        let drive = sshd.home().parent().expect("the machine's directory").to_owned();
        symlink(drive, drives.join("C:")).expect("a drive");
        let _ = succeed_output(
            Command::new("cp")
                .arg("-r")
                .arg(power_dev)
                .arg(drives.join(POWER_DEV)),
        );
        let _ = succeed_output(
            Command::new("chmod")
                .args(["-R", "a+rX"])
                .arg(drives.join(POWER_DEV)),
        );
        write_program(&drives.join(PYTHON), include_str!("windows/python.sh"));
        let site = place.join("site");
        fs::create_dir(&site).expect("a directory");
        fs::write(
            site.join("sitecustomize.py"),
            include_str!("windows/sitecustomize.py"),
        )
        .expect("Python's changes");
        Some(Self { sshd, drives })
    }

    /// Returns this machine's path of a file that the Windows machine names with backslashes.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.drives.join(name)
    }
}

fn write_program(path: &Path, text: &str) {
    fs::write(path, text).expect("a program");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a program");
}
