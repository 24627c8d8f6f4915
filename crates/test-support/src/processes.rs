//! Waiting for other processes, and free ports for them. This module starts no process.

use std::{
    fs::{self, File},
    net::{Ipv4Addr, TcpListener},
    ops::Range,
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use rustix::process::geteuid;

/// The result of one check of another process: `bool`, or `Option` with a value.
pub trait Look {
    /// The value of a successful check.
    type Found;

    /// Returns the value if the check was successful.
    fn found(self) -> Option<Self::Found>;
}

impl Look for bool {
    type Found = ();

    fn found(self) -> Option<()> {
        self.then_some(())
    }
}

impl<T> Look for Option<T> {
    type Found = T;

    fn found(self) -> Option<T> {
        self
    }
}

/// Polls another process twenty times per second until `look` succeeds.
///
/// # Panics
/// When `look` has not succeeded after `seconds`.
pub fn eventually<L: Look>(what: &str, seconds: u64, mut look: impl FnMut() -> L) -> L::Found {
    let begin = Instant::now();
    loop {
        if let Some(found) = look().found() {
            return found;
        }
        assert!(
            begin.elapsed() < Duration::from_secs(seconds),
            "waited {seconds} s for {what}"
        );
        thread::sleep(Duration::from_millis(50));
    }
}

/// The ports that tests use: below those that Linux gives to outgoing connections, which would take a port between its choice and its use.
const PORTS: Range<u16> = 11_000..32_000;

/// Returns a free port. No other test process of this user gets it as long as this one runs.
///
/// # Panics
/// When every port is in use.
#[must_use]
pub fn free_port() -> u16 {
    /// The locks that this process holds.
    static HELD: Mutex<Vec<File>> = Mutex::new(Vec::new());
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = std::env::temp_dir().join(format!("regatta-test-ports-{}", geteuid().as_raw()));
    fs::create_dir_all(&directory).unwrap();
    // Processes begin at different ports, so that each needs few attempts.
    let count = u32::from(PORTS.end - PORTS.start);
    let first = std::process::id().wrapping_mul(61);
    let mut ports =
        (0..count).map(|at| PORTS.start + u16::try_from(first.wrapping_add(at) % count).unwrap_or(0));
    let take = |port: u16| {
        let lock = File::create(directory.join(port.to_string())).unwrap();
        let is_free = || TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok();
        (lock.try_lock().is_ok() && is_free()).then_some((port, lock))
    };
    let (port, lock) = ports.find_map(take).unwrap();
    held.push(lock);
    port
}
