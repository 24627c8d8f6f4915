//! Reads the user's keys on a separate thread, because reading from a terminal blocks.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver},
    },
    thread,
    time::Duration,
};

use termion::{event::Key, input::TermRead as _};

/// The keyboard of standard input.
pub(super) struct Keyboard {
    keys: Receiver<Key>,
    is_closed: Arc<AtomicBool>,
}

impl Keyboard {
    /// Begins to read. The thread ends with the process, or when the terminal is gone.
    ///
    /// # Errors
    /// Returns an error when the system refuses a thread.
    pub(super) fn start() -> io::Result<Self> {
        let (sender, keys) = mpsc::channel();
        let is_closed = Arc::new(AtomicBool::new(false));
        let closed = Arc::clone(&is_closed);
        thread::Builder::new()
            .name("keyboard".to_owned())
            .spawn(move || {
                // Unknown byte sequences are ignored. An error of the terminal ends the thread.
                for key in io::stdin().keys() {
                    let Ok(key) = key else { break };
                    if sender.send(key).is_err() {
                        break;
                    }
                }
                closed.store(true, Ordering::Relaxed);
            })?;
        Ok(Self { keys, is_closed })
    }

    /// Returns the next key, if one is pressed in time.
    pub(super) fn next(&self, longest: Duration) -> Option<Key> {
        self.keys.recv_timeout(longest).ok()
    }

    /// Returns whether no key can come any more.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }
}
