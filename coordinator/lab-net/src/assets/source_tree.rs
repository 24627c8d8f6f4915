//! The files of a source that is copied into the asset store, with the sizes and times that show a change. Reads no content.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use regatta_fsutil::atomic_file::is_temporary;
use regatta_types::{
    assets::{AssetKind, is_inner_path},
    samples::SampleSet,
};

use super::error::{AssetStoreError, at};

/// A file of a source.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SourceFile {
    /// Its path in the manifest's format. Empty if the source is this file.
    pub(super) name: String,
    bytes: u64,
    modified: SystemTime,
}

/// The files of a source at one time, sorted by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceTree {
    pub(super) kind: AssetKind,
    pub(super) files: Vec<SourceFile>,
}

impl SourceTree {
    /// Reads the names, sizes and times of a file, or of everything below a directory. Symbolic links are followed. Temporary files, whose
    /// names begin with a dot, are left out of a directory.
    ///
    /// # Errors
    /// Returns [`AssetStoreError`] when a file cannot be an asset, and for a directory with unfinished samples.
    pub fn read(source: &Path) -> Result<Self, AssetStoreError> {
        let found = fs::metadata(source).map_err(at(source))?;
        let mut files = Vec::new();
        let kind = if found.is_file() {
            files.push(SourceFile::new(String::new(), &found).map_err(at(source))?);
            AssetKind::File
        } else if found.is_dir() {
            add_files_below(source, "", &mut files)?;
            files.sort();
            AssetKind::Tree
        } else {
            return Err(AssetStoreError::Kind(source.to_owned()));
        };
        Ok(Self { kind, files })
    }

    /// Returns the number of files.
    pub fn files(&self) -> u64 {
        self.files.len() as u64
    }

    /// Returns the sum of the files' sizes in bytes.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Returns the time of the last modification of a file. `None` without files.
    pub fn modified(&self) -> Option<SystemTime> {
        self.files.iter().map(|file| file.modified).max()
    }

    /// Returns the name of the first file that is not the same in `later`.
    pub(super) fn first_change<'a>(&'a self, later: &'a Self) -> Option<&'a str> {
        let (mut before, mut after) = (self.files.iter(), later.files.iter());
        loop {
            match (before.next(), after.next()) {
                (None, None) => return None,
                (Some(before), Some(after)) if before == after => {}
                (before, after) => {
                    return before
                        .min(after)
                        .or(before)
                        .or(after)
                        .map(|file| file.name.as_str());
                }
            }
        }
    }
}

impl SourceFile {
    fn new(name: String, found: &fs::Metadata) -> io::Result<Self> {
        Ok(Self {
            name,
            bytes: found.len(),
            modified: found.modified()?,
        })
    }
}

/// Adds the files below a directory. Refuses a directory with unfinished samples.
fn add_files_below(
    directory: &Path,
    prefix: &str,
    files: &mut Vec<SourceFile>,
) -> Result<(), AssetStoreError> {
    SampleSet::check_whole(directory)?;
    for entry in entries(directory)? {
        if entry.file_name().is_some_and(is_temporary) {
            continue;
        }
        let name = entry.file_name().and_then(|name| name.to_str());
        let path = name.map(|name| format!("{prefix}{name}"));
        let path = path
            .filter(|path| is_inner_path(path))
            .ok_or_else(|| AssetStoreError::Name(entry.clone()))?;
        let found = fs::metadata(&entry).map_err(at(&entry))?;
        if found.is_dir() {
            add_files_below(&entry, &format!("{path}/"), files)?;
        } else if found.is_file() {
            files.push(SourceFile::new(path, &found).map_err(at(&entry))?);
        } else {
            return Err(AssetStoreError::Kind(entry));
        }
    }
    Ok(())
}

/// Returns the paths in a directory. A missing directory has none.
pub(super) fn entries(directory: &Path) -> Result<Vec<PathBuf>, AssetStoreError> {
    let listed = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed.map_err(at(directory))?,
    };
    let paths: io::Result<_> = listed.map(|entry| Ok(entry?.path())).collect();
    paths.map_err(at(directory))
}
