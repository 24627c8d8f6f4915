//! The manifest of a backup: path, length and SHA-256 of every original, in one JSON file beside them.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::TruncateError;
use regatta_submission_check::files::{FileError, read_small, replace};

/// The manifest's name in the backup directory.
const NAME: &str = "truncation-manifest.json";
/// The largest manifest that is read, in bytes. The largest submission needs far less.
const MAX: u64 = 64 << 20;
const SCHEMA: u16 = 1;

/// The length and hash of an original.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Original {
    /// Its length in bytes.
    pub bytes: u64,
    /// Its SHA-256 in lower-case hexadecimal.
    pub sha256: String,
}

/// The originals of a backup by their path, which is the same in the backup and in the submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    schema: u16,
    /// The originals by path, with `/` between names.
    pub originals: BTreeMap<String, Original>,
    #[serde(skip)]
    path: PathBuf,
}

impl Manifest {
    /// Reads the manifest of a backup. It is empty if the file does not exist yet.
    ///
    /// # Errors
    /// Returns an error if the file exists and cannot be read or parsed.
    pub fn open(backup: &Path) -> Result<Self, TruncateError> {
        let path = backup.join(NAME);
        let text = match read_small(&path, MAX) {
            Ok(text) => text,
            Err(FileError { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(Self {
                    schema: SCHEMA,
                    originals: BTreeMap::new(),
                    path,
                });
            }
            Err(error) => return Err(error.into()),
        };
        match serde_json::from_slice::<Self>(&text) {
            Ok(manifest) => Ok(Self { path, ..manifest }),
            Err(source) => Err(TruncateError::Manifest { path, source }),
        }
    }

    /// Adds an original. The manifest is on the disk when this returns.
    pub(super) fn add(&mut self, path: &Path, original: Original) -> Result<(), TruncateError> {
        let key = path.to_string_lossy().into_owned();
        if self.originals.get(&key) == Some(&original) {
            return Ok(());
        }
        self.originals.insert(key, original);
        let mut text = serde_json::to_vec_pretty(self).map_err(|source| TruncateError::Manifest {
            path: self.path.clone(),
            source,
        })?;
        text.push(b'\n');
        Ok(replace(&self.path, &text)?)
    }
}
