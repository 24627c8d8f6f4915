//! The command that builds an engine which a run lacks, in words and as it is typed. Says nothing of which engine that is.

use std::{fmt, path::Path};

/// `engine build` with its arguments, without the program's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BuildCommand(Vec<String>);

impl BuildCommand {
    /// Of a model, into a cache; `flags` are further arguments, separated by spaces.
    pub(super) fn new(onnx: &Path, flags: &str, cache: &Path) -> Self {
        let path = |path: &Path| path.display().to_string();
        let mut words = ["engine", "build", "--onnx"].map(str::to_owned).to_vec();
        words.push(path(onnx));
        words.extend(flags.split_ascii_whitespace().map(str::to_owned));
        words.extend(["--cache".to_owned(), path(cache)]);
        Self(words)
    }

    /// Its arguments.
    pub(crate) fn words(&self) -> &[String] {
        &self.0
    }
}

/// As it is typed.
impl fmt::Display for BuildCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "regatta-agent {}", self.0.join(" "))
    }
}
