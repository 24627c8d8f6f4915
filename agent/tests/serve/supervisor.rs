//! Tests of the daemon under a service manager: it reports that it is ready, alive and stopping.

use std::{
    fs,
    os::unix::net::UnixDatagram,
    process::{Child, Command, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

/// systemd's side of a test: its socket, and the daemon that notifies it.
struct Managed {
    socket: UnixDatagram,
    daemon: Child,
    _directory: tempfile::TempDir,
}

impl Managed {
    /// Starts the daemon as systemd does, with a watchdog of 400 ms. No broker listens where it looks for one.
    fn start(config: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (path, address) = (
            directory.path().join("agent.toml"),
            directory.path().join("notify"),
        );
        fs::write(&path, config).unwrap();
        let socket = UnixDatagram::bind(&address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let daemon = Command::new(env!("CARGO_BIN_EXE_regatta-agent"))
            .args(["serve", "--config"])
            .arg(path)
            .env("NOTIFY_SOCKET", address)
            .env("WATCHDOG_USEC", "400000")
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            socket,
            daemon,
            _directory: directory,
        }
    }

    fn next_word(&self) -> String {
        let mut buffer = [0; 64];
        let length = self.socket.recv(&mut buffer).expect("the daemon says something");
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }
}

impl Drop for Managed {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

#[test]
fn ready_comes_without_a_broker_then_signs_of_life_then_stopping() {
    let mut managed = Managed::start("name = 'a'\nstate_dir = 's'\nbroker = 'mqtt://127.0.0.1:9'\n");
    assert_eq!(managed.next_word(), "READY=1");
    for _ in 0..3 {
        assert_eq!(managed.next_word(), "WATCHDOG=1");
    }
    kill_process(Pid::from_child(&managed.daemon), Signal::TERM).unwrap();
    let last = std::iter::repeat_with(|| managed.next_word()).find(|word| word != "WATCHDOG=1");
    assert_eq!(last.as_deref(), Some("STOPPING=1"));
    assert_eq!(managed.daemon.wait().unwrap().code(), Some(0));
}

#[test]
fn a_daemon_that_cannot_begin_never_says_that_it_is_ready() {
    let mut managed = Managed::start("name = 'a'\nstate_dir = '/proc/no'\nbroker = 'mqtt://127.0.0.1:9'\n");
    assert_eq!(managed.daemon.wait().unwrap().code(), Some(3));
    managed.socket.set_nonblocking(true).unwrap();
    assert!(managed.socket.recv(&mut [0; 64]).is_err(), "it said something");
}
