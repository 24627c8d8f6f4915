//! One accuracy log: keep the original, mark its hash, cut it. Each step leaves a state that the next call goes on from.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use regatta_config::procedures::Truncation as Rule;

use super::{
    Manifest, Original, TruncateError, UNCUT_SIZE, accuracy_text,
    cut::cut_file,
    targets::{Mark, Target},
};
use crate::files::{At, FileError, keep, read, read_small, replace, sha256};

pub(super) const LOG: &str = "mlperf_log_accuracy.json";
pub(super) const TEXT: &str = "accuracy.txt";

/// What was done with an accuracy log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Hashed, and cut where it has 4096 bytes and more.
    Cut {
        /// The original's length in bytes.
        bytes: u64,
        /// The original's SHA-256.
        sha256: String,
        /// Whether a hash of something else stood in `accuracy.txt` already. The official tool adds a second one too.
        second_hash: bool,
    },
    /// It has its hash and is small: done before.
    AlreadyCut,
    /// A scenario of the endpoints layout, which has no accuracy log to cut.
    Endpoints,
    /// Left alone.
    Left(Problem),
}

/// Why an accuracy log was left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// There is no `mlperf_log_accuracy.json`.
    NoLog,
    /// There is no `accuracy.txt`, which the accuracy script writes.
    NoText,
    /// The log is a link, a directory or a device.
    NoFile,
    /// Another original of the same name lies in the backup.
    BackupDiffers {
        /// The file there.
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
            Self::NoFile => write!(f, "{LOG} is no regular file: put the log itself there"),
            Self::BackupDiffers { backup } => write!(
                f,
                "{} is another log: name a new backup directory, or move that file away",
                backup.display()
            ),
        }
    }
}

/// Where the originals stay.
pub(super) enum Originals<'a> {
    /// In the input, which nobody changes.
    Input,
    /// In a backup.
    Kept {
        backup: &'a Path,
        manifest: &'a Mutex<Manifest>,
    },
}

/// Treats the log in `from`; what is left of it, and its `accuracy.txt`, go to `to`, which may be the same directory.
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
    let text = match read_small(&from.join(TEXT), accuracy_text::LARGEST) {
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
        // With a cut ahead, the last call ended between marking and cutting, and this one goes on.
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

/// Whether a log is what a call before this one left of the original in the backup. Its size does not tell: where characters have
/// several bytes, 4096 of them and the last 4096 bytes can be as large as a log that is uncut.
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

/// Puts the original where it stays, with its entry in the manifest. What is there already must be the same.
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
