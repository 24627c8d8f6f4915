//! What goes on beside a build, which may take an hour: the time that passes is told, and SIGINT or SIGTERM has it given up. What a
//! build is belongs to `build`.

use std::{
    io::{self, Write as _},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use regatta_tensorrt::Phase;
use tokio::{
    runtime,
    signal::unix::{Signal, SignalKind, signal},
    sync::oneshot,
    time::{Instant, interval_at},
};

use super::print::Progress;
use crate::exit;

/// The build can be told to give up, and is asked from TensorRT's own threads.
struct Watched {
    progress: Mutex<Progress>,
    cancelled: AtomicBool,
    /// Whether this version asks at every step if it is to go on.
    asks: bool,
}

/// Does a build, which calls the function that it gets at every step and gives up where that returns false. A second signal, or the first
/// where TensorRT does not ask, ends the program at once: the cache knows only whole engines.
///
/// # Errors
/// When signals cannot be waited for.
pub(super) fn watched<T>(
    asks: bool,
    build: impl FnOnce(&mut dyn FnMut(&Phase) -> bool) -> T,
) -> io::Result<T> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let signals = {
        let _within = runtime.enter();
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
    };
    let watched = Watched {
        progress: Mutex::new(Progress::new()),
        cancelled: AtomicBool::new(false),
        asks,
    };
    let (end, ended) = oneshot::channel();
    let built = thread::scope(|scope| {
        scope.spawn(|| runtime.block_on(watched.watch(signals, ended)));
        let built = build(&mut |phase| watched.tell(phase));
        // The other side is there for as long as nothing is sent.
        let _ = end.send(());
        built
    });
    watched.progress().end();
    Ok(built)
}

impl Watched {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells of a step. Returns whether the build goes on.
    fn tell(&self, phase: &Phase) -> bool {
        self.progress().tell(phase);
        !self.cancelled.load(Ordering::Relaxed)
    }

    async fn watch(
        &self,
        (mut interrupt, mut terminate): (Signal, Signal),
        mut ended: oneshot::Receiver<()>,
    ) {
        let period = self.progress().period();
        let mut time = interval_at(Instant::now() + period, period);
        loop {
            tokio::select! {
                _ = &mut ended => return,
                _ = interrupt.recv() => self.give_up(),
                _ = terminate.recv() => self.give_up(),
                _ = time.tick() => self.progress().pass(),
            }
        }
    }

    fn give_up(&self) {
        self.progress().end();
        let mut out = io::stderr().lock();
        if self.asks && !self.cancelled.swap(true, Ordering::Relaxed) {
            // Nobody is left to tell when standard error is closed.
            let _ = writeln!(
                out,
                "the build is given up at TensorRT's next step; another signal ends it at once"
            );
            return;
        }
        let _ = writeln!(out, "regatta-agent: the build was cancelled");
        // SAFETY: always allowed. TensorRT's threads go on computing, so nothing of theirs may be taken down before the process ends.
        unsafe { libc::_exit(exit::COULD_NOT.into()) };
    }
}
