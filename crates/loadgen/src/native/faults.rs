//! Collects what goes wrong while answers come in, from any thread and without ever growing large.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

/// So many faults are kept word for word; of the rest only the number.
const KEPT: usize = 16;

/// Faults of one series of queries.
#[derive(Debug, Default)]
pub(super) struct Faults {
    kept: Mutex<Vec<String>>,
    count: AtomicU64,
    fatal: AtomicBool,
}

impl Faults {
    /// Notes a fault after which the run can go on, though it is no longer valid.
    #[cold]
    pub(super) fn note(&self, text: impl FnOnce() -> String) {
        self.count.fetch_add(1, Ordering::Relaxed);
        let mut kept = lock(&self.kept);
        if kept.len() < KEPT {
            kept.push(text());
        }
    }

    /// Notes a fault after which the run must end.
    #[cold]
    pub(super) fn give_up(&self, text: impl FnOnce() -> String) {
        self.note(text);
        self.fatal.store(true, Ordering::SeqCst);
    }

    /// Whether the run must end.
    #[inline]
    pub(super) fn is_fatal(&self) -> bool {
        self.fatal.load(Ordering::SeqCst)
    }

    /// All that was noted.
    pub(super) fn take(&self) -> Vec<String> {
        let mut texts = std::mem::take(&mut *lock(&self.kept));
        let more = self
            .count
            .swap(0, Ordering::Relaxed)
            .saturating_sub(texts.len() as u64);
        if more > 0 {
            texts.push(format!("{more} more such faults"));
        }
        texts
    }
}

/// What a thread held when it panicked is still data: nothing here is left half-done.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
