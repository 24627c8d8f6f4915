//! Progress and cancellation of a build, which may take an hour. The elapsed time is shown, and SIGINT or SIGTERM
//! cancels the build.

use std::{
    io::{self, Write},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use regatta_tensorrt::BuildPhase;
use regatta_types::ExitCode;
use tokio::{
    runtime,
    signal::unix::{Signal, SignalKind, signal},
    sync::oneshot,
    time::{Instant, interval_at},
};

use super::print::Progress;

/// Runs a build. The build calls its argument at every step and stops when that returns `false`. If TensorRT does not
/// call it, the first signal ends the program at once, otherwise the second. This is safe, because the cache only
/// contains complete engines.
///
/// # Errors
/// When signals cannot be awaited.
pub(super) fn watched<T>(
    asks: bool,
    build: impl FnOnce(&mut dyn FnMut(&BuildPhase) -> bool) -> T,
) -> io::Result<T> {
    let progress = Progress::on_stderr();
    let period = progress.period();
    Watched::new(progress, asks).during(period, build)
}

/// A build that can be cancelled, and whose progress TensorRT's threads report.
struct Watched<W> {
    progress: Mutex<Progress<W>>,
    cancelled: AtomicBool,
    /// Whether this TensorRT version calls back at every step and can be cancelled there.
    asks: bool,
}

impl<W: Write + Send> Watched<W> {
    const fn new(progress: Progress<W>, asks: bool) -> Self {
        Self {
            progress: Mutex::new(progress),
            cancelled: AtomicBool::new(false),
            asks,
        }
    }

    /// Runs the build and shows the elapsed time at every period.
    fn during<T>(
        &self,
        period: Duration,
        build: impl FnOnce(&mut dyn FnMut(&BuildPhase) -> bool) -> T,
    ) -> io::Result<T> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let signals = {
            let _within = runtime.enter();
            [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?]
        };
        let (end, ended) = oneshot::channel();
        let built = thread::scope(|scope| {
            scope.spawn(|| runtime.block_on(self.watch(period, signals, ended)));
            let built = build(&mut |phase| self.tell(phase));
            // The receiver exists until this is sent.
            let _ = end.send(());
            built
        });
        self.progress().end();
        Ok(built)
    }

    fn progress(&self) -> MutexGuard<'_, Progress<W>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows a step. Returns whether the build continues.
    fn tell(&self, phase: &BuildPhase) -> bool {
        self.progress().tell(phase);
        !self.cancelled.load(Ordering::Relaxed)
    }

    async fn watch(&self, period: Duration, signals: [Signal; 2], mut ended: oneshot::Receiver<()>) {
        let [mut interrupt, mut terminate] = signals;
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
        if self.asks && !self.cancelled.swap(true, Ordering::Relaxed) {
            self.progress()
                .say("the build stops at TensorRT's next step; another signal ends it at once");
            return;
        }
        self.progress().say("regatta-agent: the build was cancelled");
        // SAFETY: always allowed. TensorRT's threads continue to compute, so nothing of theirs may be freed before the
        // process ends.
        unsafe { libc::_exit(ExitCode::Failed as i32) };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[derive(Clone, Default)]
    struct CapturedLog(Arc<Mutex<Vec<u8>>>);

    impl CapturedLog {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for CapturedLog {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Returns the output, as soon as it contains `words` often enough.
    fn output_of(lively: bool, phase: Option<&BuildPhase>, words: &str, times: usize) -> String {
        let log = CapturedLog::default();
        let watched = Watched::new(Progress::new(log.clone(), lively), true);
        watched
            .during(Duration::from_millis(1), |tell| {
                assert!(phase.is_none_or(tell), "the build was cancelled");
                while log.text().matches(words).count() < times {
                    thread::sleep(Duration::from_millis(1));
                }
            })
            .unwrap();
        log.text()
    }

    #[test]
    fn engine_build_reports_progress_when_tensorrt_is_silent() {
        output_of(false, None, "still building, ", 2);
        let phase = BuildPhase {
            name: "tactics".to_owned(),
            step: 0,
            steps: 7,
        };
        let lines = output_of(false, Some(&phase), "still building, ", 2);
        assert!(lines.starts_with("tactics\n"), "{lines}");
        // On a terminal, both are in one line, which is cleared at the end.
        let line = output_of(true, Some(&phase), "\r\u{1b}[Ktactics 0/7, ", 3);
        assert!(line.ends_with("\r\u{1b}[K") && !line.contains('\n'), "{line:?}");
        output_of(true, None, "\r\u{1b}[Kbuilding, ", 2);
    }
}
