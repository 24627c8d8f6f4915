//! The map file of a classification dataset (the reference's `val_map.txt`): one line per sample with its name and label. The
//! line's position is the sample's index in the query sample library. This file does not write maps.

use std::{
    io,
    path::{Path, PathBuf},
};

use regatta_fsutil::regular_file;
use regatta_types::assets::is_inner_path;

/// The names and labels of a dataset, in the order of sample indices.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ValMap {
    samples: Vec<(String, i64)>,
}

/// The error for a map that cannot be read. Lines count from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ValMapError {
    /// The file cannot be read as text.
    #[error("cannot read {path}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A line has no name and label, or its name leads out of the samples' directory.
    #[error("{path}, line {line}: no name and label", path = path.display())]
    Line {
        /// The file.
        path: PathBuf,
        line: usize,
    },
    /// A label is not an integer.
    #[error("{path}, line {line}: the label `{text}` is not an integer", path = path.display())]
    Label {
        /// The file.
        path: PathBuf,
        line: usize,
        /// The label's text.
        text: String,
    },
}

/// Reads the names in a map, in the order of sample indices, and ignores the other columns.
///
/// # Errors
/// [`ValMapError`] for an unreadable file, and for a name that leads out of the samples' directory.
pub fn names(path: &Path) -> Result<Vec<String>, ValMapError> {
    let text = regular_file::read_text(path).map_err(|source| ValMapError::Read {
        path: path.to_owned(),
        source,
    })?;
    let lines = text.trim_end().lines().enumerate();
    lines
        .map(|(index, line)| {
            let name = line.split_whitespace().next();
            name.filter(|name| is_inner_path(name))
                .map(str::to_owned)
                .ok_or_else(|| ValMapError::Line {
                    path: path.to_owned(),
                    line: index + 1,
                })
        })
        .collect()
}

impl ValMap {
    /// Reads a map. Ignores columns after the label, as the reference does. Empty lines are only allowed at the end, because a
    /// line's position is the sample's index.
    ///
    /// # Errors
    /// [`ValMapError`] with the first invalid line.
    pub fn read(path: &Path) -> Result<Self, ValMapError> {
        let text = regular_file::read_text(path).map_err(|source| ValMapError::Read {
            path: path.to_owned(),
            source,
        })?;
        let mut samples = Vec::new();
        for (index, line) in text.trim_end().lines().enumerate() {
            let line_number = index + 1;
            let mut words = line.split_whitespace();
            let (Some(name), Some(label)) = (words.next(), words.next()) else {
                return Err(ValMapError::Line {
                    path: path.to_owned(),
                    line: line_number,
                });
            };
            let label = label.parse().map_err(|_| ValMapError::Label {
                path: path.to_owned(),
                line: line_number,
                text: label.to_owned(),
            })?;
            samples.push((name.to_owned(), label));
        }
        Ok(Self { samples })
    }

    /// Returns the number of samples.
    #[must_use]
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Returns whether the map has no sample.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Returns the label of the sample with this index.
    #[must_use]
    pub fn label(&self, index: usize) -> Option<i64> {
        self.samples.get(index).map(|(_, label)| *label)
    }

    /// Returns the names in the order of sample indices.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.samples.iter().map(|(name, _)| name.as_str())
    }
}
