//! Runs Debian's mosquitto on its own loopback port, without persistence, until the test ends.

use std::{
    fs,
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::eventually;

/// A running mosquitto.
pub(crate) struct Mosquitto {
    child: Child,
    directory: TempDir,
    /// Its port on 127.0.0.1.
    pub(crate) port: u16,
}

impl Mosquitto {
    /// Starts a mosquitto. Returns `None`, after printing the reason, where it is not installed; in CI that is a failure.
    pub(crate) fn start() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let config = format!("listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\n");
        fs::write(directory.path().join("mosquitto.conf"), config).unwrap();
        let Some(child) = spawn(directory.path()) else {
            assert!(
                std::env::var_os("CI").is_none_or(|ci| ci != "true"),
                "CI leaves nothing out: mosquitto is missing"
            );
            println!("left out: mosquitto is not installed (Debian: mosquitto)");
            return None;
        };
        let broker = Self {
            child,
            directory,
            port,
        };
        broker.wait_until_up();
        Some(broker)
    }

    /// Kills it with SIGKILL; all its messages are lost.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Stops it for a while with open connections.
    pub(crate) fn stall(&self, time: Duration) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::STOP).unwrap();
        std::thread::sleep(time);
        kill_process(pid, Signal::CONT).unwrap();
    }

    /// Starts it again on the same port.
    pub(crate) fn start_again(&mut self) {
        self.child = spawn(self.directory.path()).unwrap();
        self.wait_until_up();
    }

    fn wait_until_up(&self) {
        eventually("mosquitto to listen", 10, || {
            TcpStream::connect(("127.0.0.1", self.port)).ok()
        });
    }
}

impl Drop for Mosquitto {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(directory: &Path) -> Option<Child> {
    let program = [
        "/usr/sbin/mosquitto",
        "/usr/bin/mosquitto",
        "/usr/local/sbin/mosquitto",
    ]
    .into_iter()
    .find(|path| Path::new(path).exists())?;
    let mut command = Command::new(program);
    command.arg("-c").arg(directory.join("mosquitto.conf"));
    Some(
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    )
}
