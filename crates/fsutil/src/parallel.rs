//! Processes files on several threads. File systems commit concurrent flushes together, so several threads flush faster than one.
//! The work is the caller's.

use std::{io, thread};

/// The maximum number of threads.
const THREADS: usize = 16;

/// Calls `work` for each item on several threads and returns the results in the items' order. A single item is processed on this thread.
pub fn for_each_file<T: Sync>(
    items: &[T],
    work: impl Fn(&T) -> io::Result<()> + Sync,
) -> Vec<io::Result<()>> {
    if let [item] = items {
        return vec![work(item)];
    }
    let share = items.len().div_ceil(THREADS).max(1);
    let work = &work;
    thread::scope(|scope| {
        let workers: Vec<_> = items
            .chunks(share)
            .map(|share| {
                let worker = scope.spawn(move || share.iter().map(work).collect::<Vec<_>>());
                (share.len(), worker)
            })
            .collect();
        let join = |(length, worker): (usize, thread::ScopedJoinHandle<'_, Vec<io::Result<()>>>)| {
            let panicked = |_| (0..length).map(|_| Err(io::Error::other("its thread panicked")));
            worker.join().unwrap_or_else(|panic| panicked(panic).collect())
        };
        workers.into_iter().flat_map(join).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_item_gets_its_own_result_in_order() {
        let even = |number: &usize| match number % 2 {
            0 => Ok(()),
            _ => Err(io::Error::other(number.to_string())),
        };
        for length in [0, 1, 2, 15, 16, 17, 1000] {
            let numbers: Vec<usize> = (0..length).collect();
            let results = for_each_file(&numbers, even);
            assert_eq!(results.len(), length);
            for (number, result) in results.into_iter().enumerate() {
                let message = result.err().map(|error| error.to_string());
                assert_eq!(message, (number % 2 == 1).then(|| number.to_string()));
            }
        }
    }
}
