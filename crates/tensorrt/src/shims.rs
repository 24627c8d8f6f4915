//! Where shims are looked for, and which of them serves an installed TensorRT. Goes by file names; opens none.

use std::{
    collections::BTreeSet,
    env, fs, io,
    path::{Path, PathBuf},
};

use crate::{error::OpenError, version::Version};

const PREFIX: &str = "libregatta_trt-";
const SUFFIX: &str = ".so";

/// Directories in which shims may lie, the first of which comes first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shims(Vec<PathBuf>);

impl Shims {
    /// The directories of `REGATTA_PLUGINS` (as in `PATH`, separated by colons), that of the executable, and
    /// `/usr/lib/regatta`.
    #[must_use]
    pub fn from_environment() -> Self {
        let named = env::var_os("REGATTA_PLUGINS").unwrap_or_default();
        let mut directories: Vec<_> = env::split_paths(&named)
            .filter(|d| !d.as_os_str().is_empty())
            .collect();
        let beside = env::current_exe()
            .ok()
            .and_then(|exe| exe.parent().map(Path::to_owned));
        directories.extend(beside);
        directories.push(PathBuf::from("/usr/lib/regatta"));
        Self(directories)
    }

    /// These directories and no others.
    #[must_use]
    pub const fn new(directories: Vec<PathBuf>) -> Self {
        Self(directories)
    }

    /// The shim for a library: of those that serve it, the newest.
    ///
    /// # Errors
    /// [`OpenError::NoShim`] with those that were found, or a directory that is there and cannot be read.
    pub fn find(&self, library: Version) -> Result<PathBuf, OpenError> {
        let all = self.all()?;
        let fitting = all.iter().filter(|(version, _)| version.shim_serves(&library));
        // Of equal versions the first directory's: max_by_key keeps the last of equals, so the list is turned round.
        let best = fitting.rev().max_by_key(|(version, _)| *version);
        best.map(|(_, path)| path.clone())
            .ok_or_else(|| OpenError::NoShim {
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

    fn all(&self) -> Result<Vec<(Version, PathBuf)>, OpenError> {
        let mut found = Vec::new();
        for directory in &self.0 {
            let unreadable = |source| OpenError::Directory {
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
