//! What lies in a backup: path, length and SHA-256 of every original, in one JSON file beside them.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::TruncateError;
use crate::files::{FileError, read_small, replace};

/// The manifest's name in the backup directory.
const NAME: &str = "truncation-manifest.json";
/// Far more than the largest submission's manifest.
const LARGEST: u64 = 64 << 20;
const SCHEMA: u16 = 1;

/// One original.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Original {
    /// Its length in bytes.
    pub bytes: u64,
    /// Its SHA-256 in lower-case hexadecimal.
    pub sha256: String,
}

/// The originals of a backup by their path in it, which is their path in the submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    schema: u16,
    /// Path to original; paths have `/` between their parts.
    pub originals: BTreeMap<String, Original>,
    #[serde(skip)]
    path: PathBuf,
}

impl Manifest {
    /// Reads the manifest of a backup; empty where there is none yet.
    ///
    /// # Errors
    /// When it is there and does not read.
    pub fn open(backup: &Path) -> Result<Self, TruncateError> {
        let path = backup.join(NAME);
        let text = match read_small(&path, LARGEST) {
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

    /// Adds an original, on the disk when this returns.
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
