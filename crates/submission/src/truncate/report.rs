//! What a truncation did, log by log.

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

/// What became of one accuracy log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Treated {
    /// Its directory from the root on, such as `closed/ACME/results/sys/resnet/Offline/accuracy`.
    pub directory: PathBuf,
    /// What was done.
    pub outcome: Outcome,
}

/// What became of all of them, by directory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Every place where the round's tool looks for an accuracy log.
    pub treated: Vec<Treated>,
}

impl Report {
    /// How many logs this call cut.
    #[must_use]
    pub fn cut(&self) -> usize {
        let cut = |treated: &&Treated| matches!(treated.outcome, Outcome::Cut { .. });
        self.treated.iter().filter(cut).count()
    }

    /// Those that were left alone because something is wrong with them.
    pub fn problems(&self) -> impl Iterator<Item = (&Path, &Problem)> {
        self.treated.iter().filter_map(|treated| match &treated.outcome {
            Outcome::Left(problem) => Some((treated.directory.as_path(), problem)),
            _ => None,
        })
    }
}

/// Treats the targets on all cores; most of the time goes into reading them.
pub(super) fn treat_all(
    targets: &[Target],
    treat: impl Fn(&Target) -> Result<Outcome, TruncateError> + Sync,
) -> Result<Report, TruncateError> {
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
                    // Nobody begins another one.
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
    Ok(Report { treated })
}
