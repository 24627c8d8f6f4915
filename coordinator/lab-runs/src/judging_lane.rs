//! The two threads that judge runs, and the division of runs between them. Judging reads every file from disk again, which takes minutes for many
//! gigabytes and milliseconds for a small run.

use regatta_lab_store::{self as store, RunRow, Store};

/// The minimum size of a large run in bytes. Smaller runs are hashed in a fraction of a second.
const LARGE_RUN: u64 = 64 << 20;

/// A thread that judges one run after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JudgingLane {
    /// Judges small runs.
    Small,
    /// Judges large runs.
    Large,
}

impl JudgingLane {
    pub(super) const fn thread_name(self) -> &'static str {
        match self {
            Self::Small => "finish",
            Self::Large => "finish-large",
        }
    }

    /// Returns the runs that this thread should record now, oldest first.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub(super) fn runs_to_record(self, store: &Store) -> store::Result<Vec<RunRow>> {
        let mut runs = Vec::new();
        for run in store.runs().recordable()? {
            if Self::of_bytes(store.streams().committed_bytes(run.id)?) == self {
                runs.push(run);
            }
        }
        Ok(runs)
    }

    const fn of_bytes(bytes: u64) -> Self {
        if bytes < LARGE_RUN {
            Self::Small
        } else {
            Self::Large
        }
    }
}
