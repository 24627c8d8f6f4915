//! Computes items on all processors, and hands them over in order. Memory is bounded: no thread is far ahead of the slowest.

use std::{
    collections::BTreeMap,
    num::NonZero,
    sync::{
        Condvar, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
};

/// How many items may be computed but not handed over, unless the caller bounds them.
const AHEAD: usize = 64;

/// Calls `make` for 0 to `total` on all processors, and `take` with each result on this thread, in order.
///
/// # Errors
/// The error of the first item, in order, that failed. Later items may have been made as well.
pub(crate) fn in_order<T: Send, E: Send>(
    total: usize,
    make: impl Fn(usize) -> Result<T, E> + Sync,
    take: impl FnMut(usize, T),
) -> Result<(), E> {
    in_order_at_once(AHEAD, total, make, take)
}

/// Like [`in_order`], with at most `at_once` items that are computed or not handed over. Bounds the memory of large items.
///
/// # Errors
/// As for [`in_order`].
pub(crate) fn in_order_at_once<T: Send, E: Send>(
    at_once: usize,
    total: usize,
    make: impl Fn(usize) -> Result<T, E> + Sync,
    mut take: impl FnMut(usize, T),
) -> Result<(), E> {
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = processors.min(total).min(at_once);
    let (next, window) = (AtomicUsize::new(0), Window::new(at_once));
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..threads {
            let (sender, next, window, make) = (sender.clone(), &next, &window, &make);
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= total || !window.wait_for(index) || sender.send((index, make(index))).is_err()
                    {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut waiting = BTreeMap::new();
        let mut taken = 0;
        for (index, result) in receiver {
            waiting.insert(index, result);
            while let Some(result) = waiting.remove(&taken) {
                match result {
                    Ok(item) => take(taken, item),
                    Err(error) => {
                        window.close();
                        return Err(error);
                    }
                }
                taken += 1;
                window.move_to(taken);
            }
        }
        Ok(())
    })
}

/// The number of items that were handed over; `None` when no more are wanted.
struct Window {
    taken: Mutex<Option<usize>>,
    moved: Condvar,
    ahead: usize,
}

impl Window {
    const fn new(ahead: usize) -> Self {
        Self {
            taken: Mutex::new(Some(0)),
            moved: Condvar::new(),
            ahead,
        }
    }

    /// Waits until the item may be made. Returns `false` when it is not needed any more.
    fn wait_for(&self, index: usize) -> bool {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let is_far = |taken: &mut Option<usize>| taken.is_some_and(|taken| index >= taken + self.ahead);
        let taken = self.moved.wait_while(taken, is_far);
        taken.unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn move_to(&self, taken: usize) {
        self.set(Some(taken));
    }

    fn close(&self) {
        self.set(None);
    }

    fn set(&self, taken: Option<usize>) {
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner) = taken;
        self.moved.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_in_order_and_the_first_error_ends_them() {
        let mut taken = Vec::new();
        let done: Result<(), usize> = in_order(
            500,
            |index| Ok(index * 2),
            |index, item| taken.push((index, item)),
        );
        assert_eq!(done, Ok(()));
        assert_eq!(
            taken,
            (0..500).map(|index| (index, index * 2)).collect::<Vec<_>>()
        );
        let mut count = 0;
        let failed = in_order(
            10_000,
            |index| if index % 100 == 99 { Err(index) } else { Ok(()) },
            |_, ()| count += 1,
        );
        assert_eq!((failed, count), (Err(99), 99));
        assert_eq!(in_order(0, |_| Err(()), |_, ()| {}), Ok(()));
    }
}
