//! The report of a truncation, log by log.

use std::{
    num::NonZero,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use super::{
    TruncateError,
    step::{Outcome, Problem},
    targets::Target,
};

/// The outcome for one accuracy log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Treated {
    /// Its directory relative to the root, for example `closed/ACME/results/sys/resnet/Offline/accuracy`.
    pub directory: PathBuf,
    pub outcome: Outcome,
}

/// The outcomes for all logs, by directory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TruncationReport {
    /// Every place in which the round's tool searches for an accuracy log.
    pub treated: Vec<Treated>,
}

impl TruncationReport {
    /// Returns the number of logs that this call cut.
    #[must_use]
    pub fn cut(&self) -> usize {
        let cut = |treated: &&Treated| matches!(treated.outcome, Outcome::Cut { .. });
        self.treated.iter().filter(cut).count()
    }

    /// Returns the logs that were left unchanged because of a problem.
    pub fn problems(&self) -> impl Iterator<Item = (&Path, &Problem)> {
        self.treated.iter().filter_map(|treated| match &treated.outcome {
            Outcome::Left(problem) => Some((treated.directory.as_path(), problem)),
            _ => None,
        })
    }
}

/// Applies `treat` to the targets on all processors. Most of the time is spent reading them.
pub(super) fn treat_all(
    targets: &[Target],
    treat: impl Fn(&Target) -> Result<Outcome, TruncateError> + Sync,
) -> Result<TruncationReport, TruncateError> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some(target) = targets.get(next.fetch_add(1, Ordering::Relaxed)) {
            match treat(target) {
                Ok(outcome) => done.push(Treated {
                    directory: target.directory.clone(),
                    outcome,
                }),
                Err(error) => {
                    // The other workers do not start another target.
                    next.store(targets.len(), Ordering::Relaxed);
                    return Err(error);
                }
            }
        }
        Ok(done)
    };
    let workers = thread::available_parallelism()
        .map_or(1, NonZero::get)
        .min(targets.len());
    let results: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(thread::ScopedJoinHandle::join).collect()
    });
    let mut treated = Vec::with_capacity(targets.len());
    for result in results {
        treated.extend(result.map_err(|_| TruncateError::Worker)??);
    }
    treated.sort_by(|one, other| one.directory.cmp(&other.directory));
    Ok(TruncationReport { treated })
}
