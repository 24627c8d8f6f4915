//! A real PostgreSQL server for a test, from Debian's package, on a socket in a temporary directory and on a port of loopback.

use std::{
    fs,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command},
};

use regatta_test_requirements::{Requirement, skip};
use regatta_test_support::{eventually, free_port};

/// The user of the server when the test is root, because the server refuses to run as root: Debian's `nobody`.
const NOBODY: u32 = 65_534;

/// A running server with the database `lab`. Dropping it ends the server and removes its data.
pub struct PostgreSql {
    programs: PathBuf,
    directory: tempfile::TempDir,
    port: u16,
    server: Option<Child>,
}

impl PostgreSql {
    /// Starts a server. Returns `None` and records a skipped test when it is not installed.
    ///
    /// # Panics
    /// Panics when the server does not start.
    #[must_use]
    pub fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            let reason = "PostgreSQL is not installed (Debian: postgresql)";
            skip(Requirement::Package, reason);
            return None;
        };
        let directory = tempfile::tempdir().expect("a temporary directory");
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(directory.path(), Some(NOBODY), None).expect("an owner");
        }
        let mut server = Self {
            programs,
            directory,
            port: free_port(),
            server: None,
        };
        let data = server.data();
        server.succeed(
            "initdb",
            &["--auth=trust", "--username=regatta", "--no-sync", "-D"],
            &data,
        );
        server.restart();
        server.succeed(
            "createdb",
            &["--username=regatta", "lab", "-h"],
            server.directory.path(),
        );
        Some(server)
    }

    /// Starts the server, or ends it and starts it again, as a failover does.
    ///
    /// # Panics
    /// Panics when the server does not start.
    pub fn restart(&mut self) {
        self.stop();
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(self.directory.path().join("log"))
            .expect("a log");
        let mut command = self.program("postgres");
        command
            .arg("-D")
            .arg(self.data())
            .arg("-k")
            .arg(self.directory.path())
            .args(["-p", &self.port.to_string()])
            .args(["-c", "listen_addresses=127.0.0.1", "-c", "max_connections=200"])
            .stdout(log.try_clone().expect("a log"))
            .stderr(log);
        self.server = Some(command.spawn().expect("postgres starts"));
        eventually("PostgreSQL", 60, || {
            let mut ready = self.program("pg_isready");
            ready.arg("-h").arg(self.directory.path());
            let output = ready.args(["-p", &self.port.to_string()]).output();
            output.is_ok_and(|output| output.status.success())
        });
    }

    /// Ends the server at once, as a power cut does to its connections.
    pub fn stop(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
            // Its children end when they notice that it is gone.
            eventually("the end of PostgreSQL", 60, || {
                !self.data().join("postmaster.pid").exists() || self.is_gone()
            });
        }
    }

    fn is_gone(&self) -> bool {
        let Ok(text) = fs::read_to_string(self.data().join("postmaster.pid")) else {
            return true;
        };
        let pid = text.lines().next().unwrap_or_default().to_owned();
        !Path::new("/proc").join(pid).exists()
    }

    /// Returns the address of the database `lab`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("postgresql://regatta@127.0.0.1:{}/lab", self.port)
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command.current_dir("/").env("PGPORT", self.port.to_string());
        if rustix::process::geteuid().is_root() {
            command.uid(NOBODY);
        }
        command
    }

    fn succeed(&self, name: &str, words: &[&str], last: &Path) {
        let output = self
            .program(name)
            .args(words)
            .arg(last)
            .output()
            .expect("it starts");
        assert!(
            output.status.success(),
            "{name}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

impl Drop for PostgreSql {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Finds the directory of the server's programs, which Debian does not put into `PATH`.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut directories: Vec<_> = versions
        .flatten()
        .map(|version| version.path().join("bin"))
        .collect();
    directories.sort();
    directories.into_iter().rfind(|bin| bin.join("postgres").exists())
}
