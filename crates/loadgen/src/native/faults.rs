//! Collects faults while responses arrive, from any thread and in bounded memory.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

/// Number of faults whose text is kept; further ones are only counted.
const KEPT: usize = 16;

/// Faults of one series of queries.
#[derive(Debug, Default)]
pub(super) struct Faults {
    kept: Mutex<Vec<String>>,
    count: AtomicU64,
    fatal: AtomicBool,
}

impl Faults {
    /// Records a fault after which the run can continue, although it is no longer valid.
    #[cold]
    pub(super) fn note(&self, text: impl FnOnce() -> String) {
        self.count.fetch_add(1, Ordering::Relaxed);
        let mut kept = lock(&self.kept);
        if kept.len() < KEPT {
            kept.push(text());
        }
    }

    /// Records a fault after which the run must end.
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

    /// Returns the recorded faults.
    pub(super) fn take(&self) -> Vec<String> {
        let mut texts = std::mem::take(&mut *lock(&self.kept));
        let more = self
            .count
            .swap(0, Ordering::Relaxed)
            .saturating_sub(texts.len() as u64);
        if more > 0 {
            texts.push(format!("{more} more faults of this kind"));
        }
        texts
    }
}

/// Locks a mutex in spite of poisoning, because no update in this module can be interrupted halfway.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
