//! Truncation of accuracy logs for the submission, as the round's `truncate_accuracy_log.py` does it.
//!
//! On sound trees the result is the official tool's to the byte (apart from the line feed below). It goes further where
//! the official tool breaks:
//! * every file is replaced as a whole, so that a killed run leaves nothing half-written, and the next one goes on;
//! * a log whose hash already stands in `accuracy.txt` is not hashed a second time;
//! * before v5.0 the hash is put on a line of its own also when `accuracy.txt` lacks its last line feed;
//! * logs shorter than 4096 bytes and logs that are no UTF-8 are taken like any other;
//! * a relative backup directory is where the caller stands, not in the submission, and one inside it is refused;
//! * the backup has a manifest, and [`verify`] proves each cut log from it.
//!
//! Whether a cut log may be submitted is the checker's business.

mod accuracy_text;
mod cut;
mod error;
mod manifest;
mod output;
mod step;
mod targets;
mod verify;

use std::{
    num::NonZero,
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

pub use error::TruncateError;
pub use manifest::{Manifest, Original};
use regatta_config::procedures::Truncation as Rule;
pub use step::{Outcome, Problem};
use targets::Target;
pub use verify::{Doubt, Proof, verify};

use crate::files::lies_in;

/// Logs of this size and more count as not yet cut (`MAX_ACCURACY_LOG_SIZE`).
pub const UNCUT_SIZE: u64 = 10 << 10;

/// Where the originals stay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// The cut tree is written here, a directory that does not exist; the input stays as it is.
    Output(PathBuf),
    /// The input is cut in place; originals go here.
    Backup(PathBuf),
}

/// What is to be truncated.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// The submission's root, which holds `closed/`, `open/`.
    pub input: &'a Path,
    /// The submitter's directory name.
    pub submitter: &'a str,
    /// Where the originals stay.
    pub destination: Destination,
    /// Scenario directories to leave alone.
    pub skip_scenarios: &'a [String],
    /// The round's rule.
    pub rule: &'a Rule,
}

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

/// Truncates a submitter's accuracy logs.
///
/// A log that cannot be treated is told in the report, and the others are treated nevertheless, as the official tool
/// does. Repeating the call after a failure finishes what was begun.
///
/// # Errors
/// When the request makes no sense, and when a file cannot be read or written; then what was done before stays done and
/// is sound.
pub fn truncate(request: &Request<'_>) -> Result<Report, TruncateError> {
    match &request.destination {
        Destination::Output(output) => output::truncate_into(request, output),
        Destination::Backup(backup) => truncate_in_place(request, backup),
    }
}

fn truncate_in_place(request: &Request<'_>, backup: &Path) -> Result<Report, TruncateError> {
    refuse_inside(request.input, backup)?;
    let targets = targets::find(request)?;
    let manifest = Mutex::new(Manifest::open(backup)?);
    let originals = step::Originals::Kept {
        backup,
        manifest: &manifest,
    };
    treat_all(&targets, |target| {
        let directory = request.input.join(&target.directory);
        step::treat(target, &directory, &directory, &originals, request.rule)
    })
}

/// Treats the targets with every core there is; the slowest part of one is reading it.
fn treat_all(
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

/// A backup or output inside the submission would be submitted with it.
fn refuse_inside(input: &Path, other: &Path) -> Result<(), TruncateError> {
    if lies_in(other, input) {
        return Err(TruncateError::Inside {
            path: other.to_owned(),
            input: input.to_owned(),
        });
    }
    Ok(())
}
