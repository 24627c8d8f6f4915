//! Debian's mosquitto on a loopback port of its own, without persistence. It ends with the test.

use std::{
    fs::{self, File},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use regatta_test_requirements::program;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::processes::{eventually, free_port};

/// A running mosquitto.
pub struct Mosquitto {
    child: Child,
    program: PathBuf,
    directory: PathBuf,
    _own_directory: Option<TempDir>,
    /// Its port on 127.0.0.1.
    pub port: u16,
}

impl Mosquitto {
    /// Starts a mosquitto that admits everybody. Records a skipped test where it is not installed.
    #[must_use]
    pub fn start() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mut broker = Self::start_in(directory.path())?;
        broker._own_directory = Some(directory);
        Some(broker)
    }

    /// Does the same as [`Self::start`] with its configuration and log in `directory`.
    #[must_use]
    pub fn start_in(directory: &Path) -> Option<Self> {
        let port = free_port();
        let config = format!(
            "listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\nmax_inflight_messages 64\n\
             max_queued_messages 10000\n"
        );
        fs::write(directory.join("mosquitto.conf"), config).unwrap();
        Self::start_with(directory, port)
    }

    /// Starts mosquitto with the `mosquitto.conf` in `directory`, which names `port`. Its log is `mosquitto.log` there.
    ///
    /// # Panics
    /// When it does not listen in time.
    #[must_use]
    pub fn start_with(directory: &Path, port: u16) -> Option<Self> {
        let program = program("mosquitto", "mosquitto")?;
        let broker = Self {
            child: spawn(&program, directory),
            program,
            directory: directory.to_owned(),
            _own_directory: None,
            port,
        };
        broker.wait_until_up();
        Some(broker)
    }

    /// Kills it with SIGKILL. All its messages are lost.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again on the same port after [`Self::kill`].
    pub fn start_again(&mut self) {
        self.child = spawn(&self.program, &self.directory);
        self.wait_until_up();
    }

    /// Kills it and starts it again.
    pub fn restart(&mut self) {
        self.kill();
        self.start_again();
    }

    /// Stops it for a while with open connections.
    pub fn stall(&self, time: Duration) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::STOP).unwrap();
        thread::sleep(time);
        kill_process(pid, Signal::CONT).unwrap();
    }

    fn wait_until_up(&self) {
        eventually("mosquitto to listen", 30, || {
            TcpStream::connect(("127.0.0.1", self.port)).is_ok()
        });
    }
}

impl Drop for Mosquitto {
    fn drop(&mut self) {
        // It may have been killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(program: &Path, directory: &Path) -> Child {
    let log = directory.join("mosquitto.log");
    let log = File::options().create(true).append(true).open(log).unwrap();
    Command::new(program)
        .arg("-c")
        .arg(directory.join("mosquitto.conf"))
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap()
}
