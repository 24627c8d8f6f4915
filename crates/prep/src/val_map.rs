//! The map file of a classification dataset: a line per sample, its name and its label (the reference's
//! `val_map.txt`). The line's place is the sample's index in the query sample library.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use regatta_rules::assets::is_inner_path;

/// Names and labels in the order of sample indices.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ValMap {
    samples: Vec<(String, i64)>,
}

/// A map that does not read. Lines count from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ValMapError {
    /// The file cannot be had as text.
    #[error("cannot read {path}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// A line without name and label.
    #[error("{path}, line {line}: no name and label", path = path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
    },
    /// A label that is no integer.
    #[error("{path}, line {line}: the label `{given}` is no integer", path = path.display())]
    Label {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
        /// As it stands there.
        given: String,
    },
}

/// The names in a map, in the order of sample indices, whatever stands behind them.
///
/// # Errors
/// [`ValMapError`], also for a name that leads out of the samples' directory.
pub(crate) fn names(path: &Path) -> Result<Vec<String>, ValMapError> {
    let text = fs::read_to_string(path).map_err(|source| ValMapError::Read {
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
    /// Reads a map. What stands after the label is passed over, as the reference does; empty lines are wrong
    /// except at the end, because a line's place is its meaning.
    ///
    /// # Errors
    /// See [`ValMapError`].
    pub fn read(path: &Path) -> Result<Self, ValMapError> {
        let text = fs::read_to_string(path).map_err(|source| ValMapError::Read {
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
                given: label.to_owned(),
            })?;
            samples.push((name.to_owned(), label));
        }
        Ok(Self { samples })
    }

    /// Samples in the map.
    #[must_use]
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Whether the map has no sample.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// The label of the sample with this index.
    #[must_use]
    pub fn label(&self, index: usize) -> Option<i64> {
        self.samples.get(index).map(|(_, label)| *label)
    }

    /// The names, in the order of sample indices.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.samples.iter().map(|(name, _)| name.as_str())
    }
}
