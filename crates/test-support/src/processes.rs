//! Waiting for other processes, and ports for them. Starts none.

use std::{
    net::TcpListener,
    thread,
    time::{Duration, Instant},
};

/// The answer of one look at another process: `bool`, or `Option` with what was found.
pub trait Look {
    /// What is found.
    type Found;

    /// What this look has found, if anything.
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

/// Waits for something that another process does, looking twenty times a second.
///
/// # Panics
/// When it has not happened after `seconds`.
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

/// A loopback port that was free a moment ago.
///
/// # Panics
/// When loopback has none.
#[must_use]
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}
