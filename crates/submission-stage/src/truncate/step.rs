//! Truncates one accuracy log: keeps the original, writes its hash and cuts it. The next call can continue after each step.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use regatta_catalogue::procedures::Truncation as Rule;

use super::{
    Manifest, Original, TruncateError, UNCUT_SIZE, accuracy_text,
    cut::cut_file,
    targets::{Mark, Target},
};
use regatta_submission_check::files::{At, FileError, keep, read, read_small, replace, sha256};

pub(super) const LOG: &str = "mlperf_log_accuracy.json";
pub(super) const TEXT: &str = "accuracy.txt";

/// The outcome for an accuracy log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The log was hashed, and cut if it has at least 4096 bytes.
    Cut {
        /// The original's length in bytes.
        bytes: u64,
        /// The original's SHA-256.
        sha256: String,
        /// Whether `accuracy.txt` already had another hash. The official tool also adds a second one.
        second_hash: bool,
    },
    /// The log is small and has a hash from an earlier call.
    AlreadyCut,
    /// A scenario of the endpoints layout, which has no accuracy log.
    Endpoints,
    /// The log was left unchanged because of this problem.
    Left(Problem),
}

/// The reason why an accuracy log was left unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// There is no `mlperf_log_accuracy.json`.
    NoLog,
    /// There is no `accuracy.txt`, which the accuracy script writes.
    NoText,
    /// The log is a link, a directory or a device.
    NoFile,
    /// The backup has a different original of the same name.
    BackupDiffers {
        /// The file in the backup.
        backup: PathBuf,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLog => write!(f, "{LOG} is missing"),
            Self::NoText => write!(
                f,
                "{TEXT} is missing: run the benchmark's accuracy script, then truncate again"
            ),
            Self::NoFile => write!(f, "{LOG} is not a regular file: put the log itself there"),
            Self::BackupDiffers { backup } => write!(
                f,
                "{} is another log: name a new backup directory, or move that file away",
                backup.display()
            ),
        }
    }
}

/// The place of the originals.
pub(super) enum Originals<'a> {
    /// The original is in the input, which is not changed.
    Input,
    /// The original is in a backup with a manifest.
    Kept {
        backup: &'a Path,
        manifest: &'a Mutex<Manifest>,
    },
}

/// Truncates the log in `from`. The cut log and its `accuracy.txt` are written to `to`, which may be the same directory.
pub(super) fn treat(
    target: &Target,
    from: &Path,
    to: &Path,
    originals: &Originals<'_>,
    rule: &Rule,
) -> Result<Outcome, TruncateError> {
    let log = from.join(LOG);
    let size = match fs::symlink_metadata(&log) {
        Ok(metadata) if metadata.is_file() => metadata.len(),
        Ok(_) => return Ok(Outcome::Left(Problem::NoFile)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(without_log(from)),
        failed => failed.at("look at", &log)?.len(),
    };
    let text = match read_small(&from.join(TEXT), accuracy_text::MAX) {
        Ok(text) => text,
        Err(FileError { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            if target.mark == Mark::Required {
                return Ok(Outcome::Left(Problem::NoText));
            }
            Vec::new()
        }
        Err(error) => return Err(error.into()),
    };
    let marked = accuracy_text::hashes(&text).next().is_some();
    let (hash, bytes) = sha256(&log)?;
    let stated = accuracy_text::hashes(&text).any(|stated| stated == hash);
    if marked && !stated && size < UNCUT_SIZE {
        return Ok(Outcome::AlreadyCut);
    }
    if marked && !stated && is_left_of_kept(&log, size, &target.directory.join(LOG), originals)? {
        return Ok(Outcome::AlreadyCut);
    }
    let left = cut_file(&log).at("read", &log)?;
    if stated && left.is_none() {
        // If there is something to cut, the last call ended between the hash and the cut, and this one continues.
        return Ok(Outcome::AlreadyCut);
    }
    if let Some(problem) = keep_original(&log, &target.directory.join(LOG), &hash, bytes, originals)? {
        return Ok(Outcome::Left(problem));
    }
    if !stated {
        replace(
            &to.join(TEXT),
            &accuracy_text::with_hash(&text, &hash, target.mark, rule),
        )?;
    }
    if let Some(left) = left {
        replace(&to.join(LOG), &left)?;
    }
    Ok(Outcome::Cut {
        bytes,
        sha256: hash,
        second_hash: marked && !stated,
    })
}

fn without_log(from: &Path) -> Outcome {
    let scenario = from.parent().unwrap_or(from);
    let endpoints = ["config.yaml", "config.yml"]
        .iter()
        .any(|name| scenario.join(name).exists());
    if endpoints {
        Outcome::Endpoints
    } else {
        Outcome::Left(Problem::NoLog)
    }
}

/// Returns whether an earlier call cut this log from the original in the backup.
///
/// The size alone does not tell. If characters have several bytes, a cut log can be as large as an uncut one.
fn is_left_of_kept(
    log: &Path,
    size: u64,
    path: &Path,
    originals: &Originals<'_>,
) -> Result<bool, TruncateError> {
    let Originals::Kept { backup, .. } = originals else {
        return Ok(false);
    };
    let kept = backup.join(path);
    if !kept.exists() {
        return Ok(false);
    }
    let left = cut_file(&kept).at("read", &kept)?;
    let Some(left) = left.filter(|left| left.len() as u64 == size) else {
        return Ok(false);
    };
    Ok(read(log).at("read", log)? == left)
}

/// Keeps the original and adds it to the manifest. An existing original must be the same file.
fn keep_original(
    log: &Path,
    path: &Path,
    hash: &str,
    bytes: u64,
    originals: &Originals<'_>,
) -> Result<Option<Problem>, TruncateError> {
    let Originals::Kept { backup, manifest } = originals else {
        return Ok(None);
    };
    let kept = backup.join(path);
    if kept.exists() {
        if sha256(&kept)?.0 != hash {
            return Ok(Some(Problem::BackupDiffers { backup: kept }));
        }
    } else {
        keep(log, &kept)?;
    }
    let original = Original {
        bytes,
        sha256: hash.to_owned(),
    };
    manifest
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .add(path, original)?;
    Ok(None)
}
