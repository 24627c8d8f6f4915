//! Ctrl-C and the other signals that end a program, counted or noted, so that the command decides about their meaning.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::{
    process::getpgrp,
    termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr},
};
use tokio::{
    runtime::Runtime,
    signal::unix::{SignalKind, signal},
};

/// The interval for looking at the count.
const PAUSE: Duration = Duration::from_millis(50);

/// The number of interrupts since it was made. From then on Ctrl-C no longer ends the process. The terminal does not echo `^C`,
/// which would move the cursor of lines that change in place.
pub(super) struct Interrupts {
    count: Arc<AtomicUsize>,
    /// The terminal's settings before.
    terminal: Option<Termios>,
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
            terminal: without_control_echo(),
            _runtime: runtime,
        })
    }

    /// Returns the number of interrupts so far.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Waits for the interrupt with this number. Returns whether it was in time.
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

impl Drop for Interrupts {
    fn drop(&mut self) {
        if let Some(before) = self.terminal.as_ref().filter(|_| has_terminal()) {
            // A terminal that is gone needs no settings.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}

/// Returns whether this process is in the foreground of the terminal on its standard input. In the background, changing settings would stop
/// it.
fn has_terminal() -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|group| group == getpgrp())
}

/// Stops the echo of control characters, and returns the settings before. `None` without a terminal.
fn without_control_echo() -> Option<Termios> {
    if !has_terminal() {
        return None;
    }
    let before = tcgetattr(io::stdin()).ok()?;
    let mut settings = before.clone();
    settings.local_modes.remove(LocalModes::ECHOCTL);
    tcsetattr(io::stdin(), OptionalActions::Now, &settings).ok()?;
    Some(before)
}

/// Returns a flag that is set by Ctrl-C, by SIGTERM, and by SIGHUP, which comes when a terminal or its SSH login is closed.
///
/// # Errors
/// Returns an error when the system refuses a signal.
pub(super) fn end_requested(runtime: &Runtime) -> io::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&flag);
    on_end_request(runtime, move || set.store(true, Ordering::Relaxed))?;
    Ok(flag)
}

/// Calls `act` when one of these signals arrives.
///
/// # Errors
/// Returns an error when the system refuses a signal.
pub(super) fn on_end_request(runtime: &Runtime, act: impl Fn() + Clone + Send + 'static) -> io::Result<()> {
    let _entered = runtime.enter();
    for kind in [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
    ] {
        let (act, mut signal) = (act.clone(), signal(kind)?);
        runtime.spawn(async move {
            signal.recv().await;
            act();
        });
    }
    Ok(())
}
