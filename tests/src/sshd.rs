//! A board for deployments: Debian's sshd on a loopback port, with its own user whose home is a directory of the test. The machine is not
//! changed: the accounts are files mounted over /etc in the server's own mount namespace.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, chown},
    path::{Path, PathBuf},
    process::Command,
};

use regatta_test_requirements::{Requirement, require};

use crate::{Process, eventually, free_port, succeed_output};

/// The board's user.
pub const SAILOR: &str = "sailor";
/// The user's password.
pub const PASSWORD: &str = "a rope & an 'anchor'";
/// The user's id, which is unused on an ordinary system.
const UID: u32 = 48_731;

/// A running sshd.
pub struct Sshd {
    directory: tempfile::TempDir,
    /// The server's port on loopback.
    pub port: u16,
    server: Option<Process>,
}

/// The properties of a board.
#[derive(Debug, Clone, Copy, Default)]
pub struct Likeness<'a> {
    /// Programs that precede the system's: name and shell script.
    pub programs: &'a [(&'a str, &'a str)],
    /// The mount options of the home, if it is a separate disk: `size=2m`, `size=2m,ro`.
    pub home: Option<&'a str>,
    /// Additional lines of sshd's configuration.
    pub config: &'a str,
    /// The program that is the user's shell, instead of `/bin/sh`. Beside it is `sftp.py`, the SFTP server.
    pub shell: Option<&'a str>,
    /// Directories of this machine that are mounted on the board, each with its mount point there.
    pub mounts: &'a [(&'a Path, &'a str)],
    /// Environment variables of logins, in the form `NAME=VALUE`, separated by blanks.
    pub environment: &'a str,
    /// Whether /usr is read-only.
    pub read_only_usr: bool,
    /// Whether the board has systemd, and the real sudo allows the user with the password. Otherwise no systemd runs.
    pub sudo: bool,
}

impl Sshd {
    /// Starts a board. Records a skipped test when sshd is missing or the test does not run as root.
    ///
    /// # Panics
    /// Panics when the server does not start.
    #[must_use]
    pub fn start(likeness: Likeness<'_>) -> Option<Self> {
        Self::start_below(&std::env::temp_dir(), likeness)
    }

    /// Starts as [`Self::start`] with the files below a given directory, for example on a disk of its own.
    ///
    /// # Panics
    /// Panics when the server does not start.
    #[must_use]
    pub fn start_below(parent: &Path, likeness: Likeness<'_>) -> Option<Self> {
        let is_root = rustix::process::geteuid().is_root();
        let has_sudo = !likeness.sudo || Path::new("/etc/sudoers").exists();
        if !require(
            Path::new("/usr/sbin/sshd").exists(),
            Requirement::Package,
            "sshd is not installed (Debian: openssh-server)",
        ) || !require(
            is_root,
            Requirement::Right,
            "a board with its own users needs root",
        ) || !require(
            has_sudo,
            Requirement::Package,
            "sudo is not installed (Debian: sudo)",
        ) {
            return None;
        }
        let directory = tempfile::tempdir_in(parent).expect("a temporary directory");
        let mut sshd = Self {
            directory,
            port: free_port(),
            server: None,
        };
        sshd.lay_out(likeness);
        sshd.run(likeness);
        Some(sshd)
    }

    /// Returns the user's home directory on the board.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.path().join("home")
    }

    /// Returns the directory of a shell that is not `/bin/sh`.
    #[must_use]
    pub fn shell_directory(&self) -> PathBuf {
        self.path().join("shell")
    }

    /// Returns the private key that the board accepts.
    #[must_use]
    pub fn key(&self) -> PathBuf {
        self.path().join("login_key")
    }

    /// Returns the board's `/etc/sudoers`, if it has one.
    #[must_use]
    pub fn sudoers(&self) -> PathBuf {
        self.path().join("sudoers")
    }

    /// Returns the fingerprint of its host key in the format of `ssh-keygen -l`.
    ///
    /// # Panics
    /// Panics when ssh-keygen fails.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let listed = succeed_output(
            Command::new("ssh-keygen")
                .arg("-lf")
                .arg(self.path().join("host_key")),
        );
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        listed
            .split_whitespace()
            .nth(1)
            .expect("a fingerprint")
            .to_owned()
    }

    /// Replaces the host key, as on a board that was flashed again.
    ///
    /// # Panics
    /// Panics when the server does not restart.
    pub fn change_host_key(&mut self) {
        self.server = None;
        fs::remove_file(self.path().join("host_key")).expect("the host key");
        keygen(&self.path().join("host_key"));
        self.run(Likeness::default());
    }

    /// Ends all processes on the board, and starts it again.
    ///
    /// # Panics
    /// Panics when the server does not restart.
    pub fn reboot(&mut self, likeness: Likeness<'_>) {
        self.server = None;
        self.run(likeness);
    }

    /// Accepts another private key, too.
    ///
    /// # Panics
    /// Panics when its public key cannot be read.
    pub fn let_in(&self, key: &Path) {
        let public = fs::read_to_string(key.with_extension("pub")).expect("a public key");
        let file = self.path().join("authorized_keys");
        let known = fs::read_to_string(&file).expect("the login's keys");
        fs::write(file, known + &public).expect("the login's keys");
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn lay_out(&self, likeness: Likeness<'_>) {
        let here = self.path();
        // The user needs access to the parent of the home.
        fs::set_permissions(here, fs::Permissions::from_mode(0o755)).expect("permissions");
        for name in ["home", "bin"] {
            fs::create_dir(here.join(name)).expect("a directory");
        }
        chown(self.home(), Some(UID), Some(UID)).expect("the home is the user's");
        for (name, script) in likeness.programs {
            let path = here.join("bin").join(name);
            fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a program");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("permissions");
        }
        keygen(&here.join("host_key"));
        keygen(&self.key());
        fs::copy(self.key().with_extension("pub"), here.join("authorized_keys")).expect("the login's key");
        let hash = succeed_output(Command::new("openssl").args(["passwd", "-6", PASSWORD]));
        let hash = String::from_utf8_lossy(&hash.stdout).trim().to_owned();
        let also = |file: &str, line: String| {
            let text = fs::read_to_string(Path::new("/etc").join(file)).expect("the system's accounts");
            fs::write(here.join(file), format!("{text}{line}\n")).expect("accounts");
        };
        let mut shell = PathBuf::from("/bin/sh");
        let mut subsystem = String::new();
        if let Some(program) = likeness.shell {
            let place = self.shell_directory();
            fs::create_dir(&place).expect("a directory");
            shell = place.join("shell.py");
            fs::write(&shell, program).expect("the shell");
            fs::set_permissions(&shell, fs::Permissions::from_mode(0o755)).expect("permissions");
            subsystem = format!("Subsystem sftp {}\n", place.join("sftp.py").display());
        }
        let shell = shell.display();
        also(
            "passwd",
            format!("{SAILOR}:x:{UID}:{UID}::{}:{shell}", self.home().display()),
        );
        also("group", format!("{SAILOR}:x:{UID}:"));
        also("shadow", format!("{SAILOR}:{hash}:19000:0:99999:7:::"));
        fs::write(self.sudoers(), format!("{SAILOR} ALL=(ALL) ALL\n")).expect("who may use sudo");
        fs::set_permissions(self.sudoers(), fs::Permissions::from_mode(0o440)).expect("permissions");
        let directory = here.display();
        let port = self.port;
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {directory}/host_key\nPidFile none\nUsePAM no\n\
             AuthorizedKeysFile {directory}/authorized_keys\nStrictModes no\nPasswordAuthentication yes\n\
             SetEnv PATH={directory}/bin:/usr/bin:/bin {}\n{subsystem}{}",
            likeness.environment, likeness.config
        );
        fs::write(here.join("sshd_config"), config).expect("the server's configuration");
    }

    fn run(&mut self, likeness: Likeness<'_>) {
        let here = self.path().display();
        let disk = likeness.home.map_or_else(String::new, |options| {
            format!("mount -t tmpfs -o uid={UID},gid={UID},mode=755,{options} tmpfs {here}/home\n")
        });
        // The machine's own systemd must not be visible on the board.
        let system = if likeness.sudo {
            format!("mkdir -p /run/systemd/system\nmount --bind {here}/sudoers /etc/sudoers\n")
        } else {
            String::new()
        };
        let run = "mount -t tmpfs -o mode=755 tmpfs /run\nmkdir /run/sshd\n";
        let mut mounts = String::new();
        for (from, to) in likeness.mounts {
            mounts.push_str(&format!("mount --bind {} {to}\n", from.display()));
        }
        if likeness.read_only_usr {
            mounts.push_str("mount --bind /usr /usr\nmount -o remount,bind,ro /usr\n");
        }
        let script = format!(
            "set -e\n{disk}{run}{system}{mounts}for file in passwd group shadow; do mount --bind {here}/$file /etc/$file; done\n\
             exec /usr/sbin/sshd -D -e -f {here}/sshd_config"
        );
        let mut command = Command::new("unshare");
        // A separate PID namespace ends every process that the board has started.
        command.args([
            "--mount",
            "--propagation",
            "private",
            "--pid",
            "--fork",
            "--mount-proc",
            "--kill-child",
        ]);
        command.args(["sh", "-c", &script]);
        self.server = Some(Process::start(&mut command, &self.path().join("sshd.log")));
        eventually("sshd to listen", 20, || {
            std::net::TcpStream::connect(("127.0.0.1", self.port)).is_ok()
        });
    }
}

fn keygen(path: &Path) {
    let mut command = Command::new("ssh-keygen");
    let _ = succeed_output(command.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(path));
}
