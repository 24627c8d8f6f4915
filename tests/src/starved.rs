//! A process that gets little processor time: it is stopped for most of each interval, like by the CPU quota of a control group. This needs neither
//! privileges nor control groups.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

/// The length of an interval, of which the process gets its share. It is long compared to scheduler time slices, so that a small share is not lost to
/// other programs.
const INTERVAL: Duration = Duration::from_secs(1);

/// A starved process. It runs normally again once this is dropped.
pub struct Starved {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Starved {
    /// Limits a process to this percentage of the time. A process with several threads must be bound to one processor; otherwise, the percentage does
    /// not refer to one processor.
    ///
    /// # Panics
    /// Panics when the number is not a valid process id.
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
            // The process always continues in the end.
            let _ = thread.join();
        }
    }
}
