//! Debian's mosquitto on its own loopback port, without persistence. It ends with the test.

use std::{net::TcpStream, path::Path, process::Command};

use crate::{Process, eventually, free_port, left_out};

/// A running mosquitto.
pub struct Mosquitto {
    process: Process,
    directory: std::path::PathBuf,
    /// Its port on 127.0.0.1.
    pub port: u16,
}

impl Mosquitto {
    /// Starts mosquitto with its files in `directory`. Returns `None` and prints the reason when mosquitto is not installed.
    ///
    /// # Panics
    /// Panics when mosquitto does not start and, under CI, when it is not installed.
    #[must_use]
    pub fn start(directory: &Path) -> Option<Self> {
        let port = free_port();
        let config = format!(
            "listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\nmax_inflight_messages 64\n\
             max_queued_messages 10000\n"
        );
        std::fs::write(directory.join("mosquitto.conf"), config).expect("the configuration is written");
        Self::start_with(directory, port)
    }

    /// Starts mosquitto with the `mosquitto.conf` in `directory`, listening on `port`.
    ///
    /// # Panics
    /// Panics in the same cases as [`Self::start`].
    #[must_use]
    pub fn start_with(directory: &Path, port: u16) -> Option<Self> {
        let Some(process) = Self::spawn(directory) else {
            left_out("mosquitto is not installed (Debian: mosquitto)");
            return None;
        };
        let broker = Self {
            process,
            directory: directory.to_owned(),
            port,
        };
        broker.wait_until_up();
        Some(broker)
    }

    /// Kills mosquitto and starts it again. Its state is lost.
    ///
    /// # Panics
    /// Panics when it does not start again.
    pub fn restart(&mut self) {
        self.process.kill();
        self.process = Self::spawn(&self.directory).expect("it was there a moment ago");
        self.wait_until_up();
    }

    fn spawn(directory: &Path) -> Option<Process> {
        let program = [
            "/usr/sbin/mosquitto",
            "/usr/bin/mosquitto",
            "/usr/local/sbin/mosquitto",
        ]
        .into_iter()
        .find(|path| Path::new(path).exists())?;
        let mut command = Command::new(program);
        command.arg("-c").arg(directory.join("mosquitto.conf"));
        Some(Process::start(&mut command, &directory.join("mosquitto.log")))
    }

    fn wait_until_up(&self) {
        eventually("mosquitto to listen", 10, || {
            TcpStream::connect(("127.0.0.1", self.port)).is_ok()
        });
    }
}
