//! The planned tree: paths and the source of each file's bytes.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::StageError;
use crate::draft::Draft;

/// The source of a file's bytes.
#[derive(Debug, Clone)]
pub(super) enum Content {
    /// A text that staging writes.
    Text(String),
    /// A file that is copied unchanged.
    Copy(PathBuf),
    /// A file that is copied, and whose SHA-256 must be the one that the device proves.
    Proven {
        /// The run's file.
        from: PathBuf,
        /// The SHA-256, in lower-case hexadecimal.
        sha256: String,
    },
}

/// The planned files by path, relative to the submission's root.
pub(super) type Files = BTreeMap<String, Content>;

/// Writes the files into a draft.
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
