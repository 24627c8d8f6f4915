//! The directories of shims, and the choice of the shim for an installed TensorRT. Reads file names only, and opens no shim.

use std::{collections::BTreeSet, fs, io, path::PathBuf};

use regatta_fsutil::plugin_directories::plugin_directories;

use crate::{error::TensorRtOpenError, version::Version};

const PREFIX: &str = "libregatta_trt-";
const SUFFIX: &str = ".so";

/// The directories that are searched for shims, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShimDirectories(Vec<PathBuf>);

impl ShimDirectories {
    /// Returns the directories of `REGATTA_PLUGINS` (separated by colons, as in `PATH`), the executable's directory and
    /// `/usr/lib/regatta`.
    #[must_use]
    pub fn from_environment() -> Self {
        Self(plugin_directories())
    }

    /// Searches only these directories.
    #[must_use]
    pub const fn new(directories: Vec<PathBuf>) -> Self {
        Self(directories)
    }

    /// Finds the newest shim that supports a library.
    ///
    /// # Errors
    /// [`TensorRtOpenError::NoShim`] with the versions that were found, or [`TensorRtOpenError::Directory`] when an existing
    /// directory cannot be read.
    pub fn find(&self, library: Version) -> Result<PathBuf, TensorRtOpenError> {
        let all = self.all()?;
        let supporting = all.iter().filter(|(version, _)| version.shim_supports(&library));
        // The first directory wins among equal versions. `max_by_key` returns the last of equal elements, hence `rev`.
        let newest = supporting.rev().max_by_key(|(version, _)| *version);
        newest
            .map(|(_, path)| path.clone())
            .ok_or_else(|| TensorRtOpenError::NoShim {
                library,
                found: all
                    .iter()
                    .map(|(version, _)| version)
                    .collect::<BTreeSet<_>>()
                    .into_iter()
                    .map(ToString::to_string)
                    .collect(),
            })
    }

    /// Returns all shims with the versions that they were compiled for, in the order of the search.
    ///
    /// # Errors
    /// [`TensorRtOpenError::Directory`] when an existing directory cannot be read.
    pub fn all(&self) -> Result<Vec<(Version, PathBuf)>, TensorRtOpenError> {
        let mut found = Vec::new();
        for directory in &self.0 {
            let unreadable = |source| TensorRtOpenError::Directory {
                path: directory.clone(),
                source,
            };
            let entries = match fs::read_dir(directory) {
                Ok(entries) => entries,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(unreadable(error)),
            };
            for entry in entries {
                let entry = entry.map_err(unreadable)?;
                let name = entry.file_name();
                let version = name
                    .to_str()
                    .and_then(|name| name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.parse().ok());
                found.extend(version.map(|version| (version, entry.path())));
            }
        }
        Ok(found)
    }
}
