//! Table of the outstanding samples, with LoadGen's own id of each.
//!
//! LoadGen's ids are pointers into its memory. A response with a repeated, late or invented id would corrupt that memory. The SUT
//! therefore gets Regatta's own numbers. A response reaches LoadGen only while this table lists its number as outstanding. The table has
//! eight bytes per sample; neither issuing nor answering takes a lock.

use std::{
    hint::spin_loop,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::ffi::Sample;

/// Entries in the first chunk. Each further chunk is twice as large as the previous one.
const FIRST_CHUNK: u64 = 1 << 12;
/// Enough chunks for 2^52 samples.
const CHUNKS: usize = 40;

/// Value of an entry after its response. LoadGen's ids are aligned pointers, so no id equals this value or contains [`BUSY`].
const ANSWERED: u64 = 1;
/// Bit that marks an entry while a first token is passed to LoadGen. A final response waits until it is cleared.
const BUSY: u64 = 1;

/// The table. Numbers begin at 1, because LoadGen reserves 0.
#[derive(Debug)]
pub(crate) struct Answers {
    next: AtomicU64,
    chunks: [OnceLock<Box<[AtomicU64]>>; CHUNKS],
}

/// Why a response is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotOutstanding {
    /// No sample has that number.
    Unknown,
    /// The sample already has its response.
    Answered,
}

impl Answers {
    pub(crate) fn new() -> Self {
        Self {
            next: AtomicU64::new(1),
            chunks: [const { OnceLock::new() }; CHUNKS],
        }
    }

    /// Returns the number of samples issued so far.
    pub(crate) fn issued(&self) -> u64 {
        self.next.load(Ordering::Relaxed) - 1
    }

    /// Registers a query's samples and returns the number of the first one; the others follow consecutively.
    pub(crate) fn issue(&self, samples: &[Sample]) -> u64 {
        let first = self.next.fetch_add(samples.len() as u64, Ordering::Relaxed);
        for (number, sample) in (first..).zip(samples) {
            let (chunk, offset) = place(number);
            // Release: a thread that reads the id must see the data that LoadGen wrote behind it.
            self.chunk(chunk)[offset].store(sample.id, Ordering::Release);
        }
        first
    }

    /// Marks a sample as answered and returns LoadGen's id. A second call for the same number fails.
    pub(crate) fn take(&self, number: u64) -> Result<u64, NotOutstanding> {
        let entry = self.entry(number)?;
        loop {
            let id = outstanding(entry)?;
            if entry
                .compare_exchange_weak(id, ANSWERED, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
            {
                return Ok(id);
            }
        }
    }

    /// Holds a sample for its first token and returns LoadGen's id. The sample stays outstanding until [`release`](Self::release).
    pub(crate) fn hold(&self, number: u64) -> Result<u64, NotOutstanding> {
        let entry = self.entry(number)?;
        loop {
            let id = outstanding(entry)?;
            if entry
                .compare_exchange_weak(id, id | BUSY, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
            {
                return Ok(id);
            }
        }
    }

    /// Ends a [`hold`](Self::hold).
    pub(crate) fn release(&self, number: u64, id: u64) {
        if let Ok(entry) = self.entry(number) {
            entry.store(id, Ordering::Release);
        }
    }

    fn chunk(&self, chunk: usize) -> &[AtomicU64] {
        self.chunks[chunk].get_or_init(|| {
            let zeroed = Box::<[AtomicU64]>::new_zeroed_slice(1 << (FIRST_CHUNK.ilog2() as usize + chunk));
            // SAFETY: all bits zero is an AtomicU64 of 0.
            unsafe { zeroed.assume_init() }
        })
    }

    fn entry(&self, number: u64) -> Result<&AtomicU64, NotOutstanding> {
        if number == 0 || number >= self.next.load(Ordering::Relaxed) {
            return Err(NotOutstanding::Unknown);
        }
        let (chunk, offset) = place(number);
        self.chunks
            .get(chunk)
            .and_then(OnceLock::get)
            .map(|c| &c[offset])
            .ok_or(NotOutstanding::Unknown)
    }
}

/// Returns the id of an outstanding entry; spins while the entry is busy.
fn outstanding(entry: &AtomicU64) -> Result<u64, NotOutstanding> {
    loop {
        match entry.load(Ordering::Acquire) {
            0 => return Err(NotOutstanding::Unknown),
            ANSWERED => return Err(NotOutstanding::Answered),
            held if held & BUSY != 0 => spin_loop(),
            id => return Ok(id),
        }
    }
}

/// Returns the chunk of a number and the offset in that chunk.
#[expect(
    clippy::cast_possible_truncation,
    reason = "an offset is within a chunk, which is in memory"
)]
const fn place(number: u64) -> (usize, usize) {
    let shifted = number + FIRST_CHUNK;
    let chunk = shifted.ilog2() - FIRST_CHUNK.ilog2();
    (chunk as usize, (shifted - (FIRST_CHUNK << chunk)) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(ids: std::ops::Range<u64>) -> Vec<Sample> {
        ids.map(|id| Sample { id: id * 8, index: 0 }).collect()
    }

    #[test]
    fn every_number_has_a_place_of_its_own() {
        let mut expected = 0;
        for chunk in 0..4 {
            for offset in 0..(FIRST_CHUNK << chunk) {
                assert_eq!(place(expected), (chunk, usize::try_from(offset).unwrap()));
                expected += 1;
            }
        }
    }

    #[test]
    fn an_answer_is_taken_once_and_only_for_what_was_issued() {
        let answers = Answers::new();
        let first = answers.issue(&query(1..10_001));
        assert_eq!(answers.issued(), 10_000);
        for (number, id) in (first..first + 10_000).zip(1..) {
            assert_eq!(answers.take(number), Ok(id * 8));
            assert_eq!(answers.take(number), Err(NotOutstanding::Answered));
        }
        for unknown in [0, first + 10_000, u64::MAX] {
            assert_eq!(answers.take(unknown), Err(NotOutstanding::Unknown));
        }
    }

    #[test]
    fn of_many_threads_that_answer_the_same_sample_one_succeeds() {
        let answers = Answers::new();
        let first = answers.issue(&query(1..1001));
        let taken: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| (first..first + 1000).filter(|&n| answers.take(n).is_ok()).count()))
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).sum()
        });
        assert_eq!(taken, 1000);
    }

    #[test]
    fn a_final_answer_waits_for_the_first_token() {
        let answers = Answers::new();
        let number = answers.issue(&query(1..2));
        let id = answers.hold(number).unwrap();
        std::thread::scope(|scope| {
            let last = scope.spawn(|| answers.take(number));
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(!last.is_finished());
            answers.release(number, id);
            assert_eq!(last.join().unwrap(), Ok(8));
        });
        assert_eq!(answers.hold(number), Err(NotOutstanding::Answered));
    }
}
