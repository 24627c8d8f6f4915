//! Runs jobs in parallel, the largest first, so that no large job runs alone at the end. Results keep the jobs' order.
//!
//! The memory that a running job needs is needed once per thread.

use std::{
    cmp::Reverse,
    num::NonZero,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// The largest number of threads. Disks and memory gain nothing from more.
const MAX_THREADS: usize = 16;

/// Applies `work` to every job, on one thread per processor. `size` returns the amount of work.
pub(crate) fn map<T: Send, J: Sync>(
    jobs: &[J],
    size: impl Fn(&J) -> u64,
    work: impl Fn(&J) -> T + Sync,
) -> Vec<T> {
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = processors.min(MAX_THREADS).min(jobs.len());
    if threads <= 1 {
        return jobs.iter().map(work).collect();
    }
    let mut order: Vec<_> = (0..jobs.len()).collect();
    order.sort_by_cached_key(|&index| Reverse(jobs.get(index).map(&size)));
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(jobs.len()));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(&index) = order.get(next.fetch_add(1, Ordering::Relaxed))
                    && let Some(job) = jobs.get(index)
                {
                    let result = work(job);
                    done.lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push((index, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|&(index, _)| index);
    done.into_iter().map(|(_, result)| result).collect()
}
