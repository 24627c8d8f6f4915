//! Ctrl-C and the other signals that end a program, counted or noted, so that the command decides what they mean.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use tokio::{
    runtime::Runtime,
    signal::unix::{SignalKind, signal},
};

/// The interval for looking at the count.
const PAUSE: Duration = Duration::from_millis(50);

/// The number of interrupts since it was made. From then on Ctrl-C no longer ends the process.
pub(super) struct Interrupts {
    count: Arc<AtomicUsize>,
    /// Receives the signals.
    _runtime: Runtime,
}

impl Interrupts {
    /// Begins to count.
    ///
    /// # Errors
    /// Returns an error when the system refuses a thread or the signal.
    pub(super) fn watch() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let count = Arc::new(AtomicUsize::new(0));
        let entered = runtime.enter();
        let mut interrupts = signal(SignalKind::interrupt())?;
        let counted = Arc::clone(&count);
        runtime.spawn(async move {
            while interrupts.recv().await.is_some() {
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        drop(entered);
        Ok(Self {
            count,
            _runtime: runtime,
        })
    }

    /// The number of interrupts so far.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Waits for the interrupt with this number. Returns whether it came in time.
    pub(super) fn wait_for(&self, number: usize, longest: Duration) -> bool {
        let begun = Instant::now();
        while self.count() < number {
            if begun.elapsed() >= longest {
                return false;
            }
            thread::sleep(PAUSE);
        }
        true
    }
}

/// Returns a flag that is set by Ctrl-C, by SIGTERM, and by SIGHUP, which comes when a terminal or its SSH login is closed.
///
/// # Errors
/// Returns an error when the system refuses a signal.
pub(super) fn end_requested(runtime: &Runtime) -> io::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let _entered = runtime.enter();
    for kind in [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
    ] {
        let (flag, mut signal) = (Arc::clone(&flag), signal(kind)?);
        runtime.spawn(async move {
            signal.recv().await;
            flag.store(true, Ordering::Relaxed);
        });
    }
    Ok(flag)
}
