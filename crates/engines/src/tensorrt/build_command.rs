//! The command that builds a missing engine, as arguments and as text. Other modules decide which engine that is.

use std::{fmt, path::Path};

/// The arguments of `engine build`, without the program's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildCommand(Vec<String>);

impl BuildCommand {
    /// Returns the command that builds a model into a cache. `flags` contains further arguments, separated by spaces, and `files` flags
    /// with a path each.
    pub(super) fn new(onnx: &Path, flags: &str, files: Vec<[String; 2]>, cache: &Path) -> Self {
        let path = |path: &Path| path.display().to_string();
        let mut words = ["engine", "build", "--onnx"].map(str::to_owned).to_vec();
        words.push(path(onnx));
        words.extend(flags.split_ascii_whitespace().map(str::to_owned));
        words.extend(files.into_iter().flatten());
        words.extend(["--cache".to_owned(), path(cache)]);
        Self(words)
    }

    /// Returns the arguments.
    pub fn words(&self) -> &[String] {
        &self.0
    }
}

/// Formats the command as the user types it.
impl fmt::Display for BuildCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "regatta-agent {}", self.0.join(" "))
    }
}
