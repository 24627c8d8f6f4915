//! Reading small kernel files below a root directory: `/` on a device, a mounted image, a made-up tree in tests. Gives what
//! a file says, or nothing; what it means is decided by the callers.

use std::{fs, path::PathBuf, str::FromStr};

/// The directory below which everything is read.
#[derive(Debug, Clone)]
pub(crate) struct Root(PathBuf);

impl Root {
    /// Below `directory`.
    pub(crate) fn new(directory: impl Into<PathBuf>) -> Self {
        Self(directory.into())
    }

    /// Where a file lies.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.0.join(relative)
    }

    /// Whether there is such a file or directory.
    pub(crate) fn exists(&self, relative: &str) -> bool {
        self.path(relative).exists()
    }

    /// A file's text without white space and the device tree's closing NUL; `None` when it is missing, empty or refuses to
    /// be read, as a sensor that is switched off does.
    pub(crate) fn text(&self, relative: &str) -> Option<String> {
        let bytes = fs::read(self.path(relative)).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// A file that holds one number.
    pub(crate) fn number<T: FromStr>(&self, relative: &str) -> Option<T> {
        self.text(relative)?.parse().ok()
    }

    /// A device tree's list of words, NUL between them.
    pub(crate) fn words(&self, relative: &str) -> Vec<String> {
        let text = self.text(relative).unwrap_or_default();
        text.split('\0').map(str::to_owned).collect()
    }

    /// The names in a directory, shorter ones first: `zone2` before `zone10`. Empty when it cannot be read.
    pub(crate) fn names(&self, relative: &str) -> Vec<String> {
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

    /// The paths of a directory's entries whose names begin with `prefix`, in the order of [`Self::names`].
    pub(crate) fn below(&self, relative: &str, prefix: &str) -> Vec<String> {
        let names = self.names(relative).into_iter();
        names
            .filter(|name| name.starts_with(prefix))
            .map(|name| format!("{relative}/{name}"))
            .collect()
    }
}
