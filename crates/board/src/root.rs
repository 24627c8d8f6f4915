//! Reads small kernel files below a root directory: `/` on a device, a mounted image, or a synthetic tree in tests.
//! Callers interpret the contents.

use std::{fs, path::PathBuf, str::FromStr};

/// The root directory of all reads.
#[derive(Debug, Clone)]
pub struct Root(PathBuf);

impl Root {
    /// Returns the root `directory`.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self(directory.into())
    }

    /// Returns the path of a file.
    pub fn path(&self, relative: &str) -> PathBuf {
        self.0.join(relative)
    }

    /// Returns whether a file or directory exists.
    pub fn exists(&self, relative: &str) -> bool {
        self.path(relative).exists()
    }

    /// Returns a file's text without white space and without the device tree's trailing NUL. Returns `None` if the file
    /// is missing, empty or unreadable, as a powered-off sensor is.
    pub fn text(&self, relative: &str) -> Option<String> {
        let bytes = fs::read(self.path(relative)).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// Returns the number in a file.
    pub fn number<T: FromStr>(&self, relative: &str) -> Option<T> {
        self.text(relative)?.parse().ok()
    }

    /// Returns a list of words of the device tree, which NULs separate.
    pub fn words(&self, relative: &str) -> Vec<String> {
        let text = self.text(relative).unwrap_or_default();
        text.split('\0').map(str::to_owned).collect()
    }

    /// Returns the names in a directory, shorter ones first: `zone2` before `zone10`. Empty if it cannot be read.
    pub fn names(&self, relative: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path(relative)) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
        names
    }

    /// Returns the paths of a directory's entries whose names start with `prefix`, in the order of [`Self::names`].
    pub fn below(&self, relative: &str, prefix: &str) -> Vec<String> {
        let names = self.names(relative).into_iter();
        names
            .filter(|name| name.starts_with(prefix))
            .map(|name| format!("{relative}/{name}"))
            .collect()
    }
}
