//! Waiting for other processes, and free ports for them. This module starts no process.

use std::{
    net::TcpListener,
    thread,
    time::{Duration, Instant},
};

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

/// Returns a loopback port that was just free.
///
/// # Panics
/// When loopback has no free port.
#[must_use]
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}
