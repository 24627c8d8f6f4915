//! Runs Debian's mosquitto on its own port, without persistence.

use std::{
    fs,
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

use super::{eventually, free_port};

/// A running mosquitto.
pub struct Mosquitto {
    dir: TempDir,
    child: Child,
    /// Its port on loopback.
    pub port: u16,
}

impl Mosquitto {
    /// Starts a mosquitto. Returns `None`, after printing the reason, where it is not installed and not required.
    pub fn start() -> Option<Self> {
        let port = free_port();
        let dir = tempfile::tempdir().unwrap();
        fs::write(
            dir.path().join("mosquitto.conf"),
            format!("listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\n"),
        )
        .unwrap();
        let Some(child) = Self::spawn(&dir) else {
            assert!(
                std::env::var("CI").as_deref() != Ok("true"),
                "CI leaves nothing out: mosquitto is not installed"
            );
            println!("left out: mosquitto is not installed (Debian: mosquitto)");
            return None;
        };
        let broker = Self { dir, child, port };
        broker.wait();
        Some(broker)
    }

    /// Kills it and starts it again: all its messages are lost.
    pub fn restart(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child = Self::spawn(&self.dir).unwrap();
        self.wait();
    }

    fn spawn(dir: &TempDir) -> Option<Child> {
        let program = ["/usr/sbin/mosquitto", "/usr/bin/mosquitto"]
            .into_iter()
            .find(|path| Path::new(path).exists())?;
        let mut command = Command::new(program);
        command.arg("-c").arg(dir.path().join("mosquitto.conf"));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.spawn().ok()
    }

    fn wait(&self) {
        eventually("mosquitto to listen", 30, || {
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
