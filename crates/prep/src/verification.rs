//! Compares samples on disk with a manifest: lines `SHA256  DIRECTORY/NAME.npy`, as preparation writes them beside the samples.

use std::{
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
};

use regatta_fsutil::{atomic_file::is_temporary, hash::sha256_of_file, regular_file};
use regatta_types::{assets::is_inner_path, documents::Document as _, samples::SampleSet};

use crate::{error::PrepError, in_order::in_order, samples::manifest_path};

/// The largest manifest that is read: millions of samples.
const MAX_MANIFEST: u64 = 1 << 30;

/// The result of comparing samples with a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    pub manifest: PathBuf,
    /// The number of samples in the manifest.
    pub samples: usize,
    /// The samples whose bytes differ, in the manifest's order.
    pub differing: Vec<String>,
    /// The samples that are missing or cannot be read.
    pub missing: Vec<String>,
}

impl Verification {
    /// Returns whether all samples equal the manifest.
    #[must_use]
    pub fn is_equal(&self) -> bool {
        self.differing.is_empty() && self.missing.is_empty()
    }
}

/// Hashes the samples in `dir` on all processors and compares them with `manifest`, by default the one beside the directory.
/// `progress` is called after each sample with the number of finished samples and of all.
///
/// # Errors
/// [`PrepError`] when the samples are incomplete, the manifest cannot be read, a line of it is invalid, or it has not a line
/// for each file.
pub fn verify_samples(
    dir: &Path,
    manifest: Option<&Path>,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Verification, PrepError> {
    let manifest = manifest.map_or_else(|| manifest_path(dir), Path::to_owned);
    let text = regular_file::read(&manifest, MAX_MANIFEST).map_err(|source| PrepError::Manifest {
        path: manifest.clone(),
        source,
    })?;
    let text = String::from_utf8_lossy(&text);
    let mut entries = Vec::new();
    for (index, line) in text.lines().enumerate() {
        entries.push(entry(line).ok_or_else(|| PrepError::ManifestLine {
            path: manifest.clone(),
            line: index + 1,
        })?);
    }
    let (mut differing, mut missing) = (Vec::new(), Vec::new());
    let total = entries.len();
    let expected = files_of_complete_set(dir)?;
    if expected != total {
        return Err(PrepError::ManifestLength {
            path: manifest,
            lines: total,
            expected,
        });
    }
    let hash = |index: usize| Ok::<_, PrepError>(sha256_of_file(&dir.join(entries[index].1)).ok());
    in_order(total, hash, |index, found| {
        let (expected, name) = entries[index];
        match found {
            None => missing.push(name.to_owned()),
            Some(found) if !found.hex().eq_ignore_ascii_case(expected) => differing.push(name.to_owned()),
            Some(_) => {}
        }
        progress(index + 1, total);
    })?;
    Ok(Verification {
        manifest,
        samples: total,
        differing,
        missing,
    })
}

/// Returns the number of files of the samples in `dir`, which must be complete: one per sample, or one per input if there are several.
/// Published files beside the arrays count, too.
fn files_of_complete_set(dir: &Path) -> Result<usize, PrepError> {
    SampleSet::check_whole(dir)?;
    let path = dir.join(SampleSet::FILE);
    let unreadable = |source| PrepError::Document {
        path: path.clone(),
        source,
    };
    let document = regular_file::read(&path, MAX_MANIFEST).map_err(unreadable)?;
    let set = SampleSet::from_json(&document).map_err(|error| unreadable(io::Error::other(error)))?;
    let published = || -> Result<usize, PrepError> {
        let entries = std::fs::read_dir(dir).map_err(unreadable)?.filter_map(Result::ok);
        let names = entries.map(|entry| entry.file_name());
        Ok(names
            .filter(|name| name != SampleSet::FILE && !is_temporary(name) && !is_array(name))
            .count())
    };
    Ok(match set.tensors.len() {
        1 => set.samples,
        inputs => inputs + published()?,
    })
}

/// Returns whether a name is that of an array.
fn is_array(name: &OsStr) -> bool {
    Path::new(name).extension() == Some(OsStr::new("npy"))
}

/// Splits a line into hash and file name below the samples' directory.
fn entry(line: &str) -> Option<(&str, &str)> {
    let (sha256, path) = line.split_once("  ")?;
    let (_, name) = path.split_once('/')?;
    let is_hash = sha256.len() == 64 && sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_hash && is_inner_path(name)).then_some((sha256, name))
}
