//! The two threads that judge runs, and the runs of each. Every file is read again from disk, so that a run of many gigabytes takes minutes, and
//! a small one milliseconds.

use regatta_lab_store::{self as store, RunRow, Store};

/// The bytes from which on a run is large. So many are hashed in a fraction of a second.
const LARGE_RUN: u64 = 64 << 20;

/// A thread that judges runs, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JudgingLane {
    /// The one for small runs.
    Small,
    /// The one for large runs.
    Large,
}

impl JudgingLane {
    /// Returns the thread's name.
    pub(super) const fn thread_name(self) -> &'static str {
        match self {
            Self::Small => "finish",
            Self::Large => "finish-large",
        }
    }

    /// Returns the runs of this thread that are ready to be recorded, oldest first.
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
