//! The tree as it is to be: paths, and where their bytes come from.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::StageError;
use crate::draft::Draft;

/// Where a file's bytes come from.
#[derive(Debug, Clone)]
pub(super) enum Content {
    /// Written here.
    Text(String),
    /// Copied as they are.
    Copy(PathBuf),
    /// Copied; they must have the SHA-256 that the device proves.
    Proven {
        /// The run's file.
        from: PathBuf,
        /// In lower-case hexadecimal.
        sha256: String,
    },
}

/// Files by their path from the submission's root.
pub(super) type Files = BTreeMap<String, Content>;

/// Writes files into a draft.
pub(super) fn write(files: &Files, draft: &Draft) -> Result<(), StageError> {
    for (path, content) in files {
        match content {
            Content::Text(text) => draft.write(path, text.as_bytes())?,
            Content::Copy(from) => drop(draft.copy(from, Path::new(path))?),
            Content::Proven { from, sha256 } => {
                let found = draft.copy(from, Path::new(path))?;
                if found != *sha256 {
                    return Err(StageError::NotProven {
                        path: from.clone(),
                        found,
                        proven: sha256.clone(),
                    });
                }
            }
        }
    }
    Ok(())
}
