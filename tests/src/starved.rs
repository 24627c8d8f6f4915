//! A process that gets little processor time: it is stopped for most of each interval, as by a quota of its control group. This needs no
//! right and no control groups.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

/// The interval, of which the process gets its share. It is long beside the turns of other programs, so that a small share is not lost to them.
const INTERVAL: Duration = Duration::from_secs(1);

/// A starved process. It gets all its time again when this is dropped.
pub struct Starved {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Starved {
    /// Lets a process have this percentage of the time. A process with several threads must be bound to one processor for it to be a share of
    /// one.
    ///
    /// # Panics
    /// Panics when the number is none of a process.
    #[must_use]
    pub fn new(process: u32, percent: u32) -> Self {
        let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
        let pid = pid.expect("a process id");
        let running = INTERVAL * percent / 100;
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                // A process that has ended needs no time.
                let _ = kill_process(pid, Signal::STOP);
                thread::sleep(INTERVAL - running);
                let _ = kill_process(pid, Signal::CONT);
                thread::sleep(running);
            }
        });
        Self {
            is_over,
            thread: Some(thread),
        }
    }
}

impl Drop for Starved {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It continues the process last.
            let _ = thread.join();
        }
    }
}
