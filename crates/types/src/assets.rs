//! Assets: models, preprocessed data and caches that a run needs on its device, named by their content. This module defines the common
//! part of device and coordinator: how a spec names assets, and the manifest of a tree. It transfers and stores nothing.
//!
//! A *file* is named by the SHA-256 of its bytes. A *tree* is a directory of files, named by the SHA-256 of its manifest. Its content
//! is the files' bytes in the order of their paths. The manifest has one line per file in the same order:
//!
//! ```text
//! SHA256 BYTES PATH
//! ```

use std::{
    fmt,
    path::{Component, Path},
    str::FromStr,
};

use serde::{Deserialize, Serialize};

/// The default limit on the assets that a device keeps, in MiB (`assets_max_mib` in agent.toml).
pub const DEFAULT_MAX_MIB: u64 = 16 * 1024;
/// Longest path of an asset or in a manifest, in bytes.
pub const MAX_PATH: usize = 1024;

/// The assets that a run needs on its device, and the server that has them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assets {
    /// Address of the coordinator's asset store for devices: `host:port`, with an IPv6 address in brackets.
    pub server: String,
    /// The required assets.
    pub needed: Vec<Asset>,
}

/// A file or a tree of files, named by its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asset {
    /// Its path below the scratch directory (`MLPERF_SCRATCH_PATH`).
    pub path: String,
    /// Whether it is a file or a tree.
    pub kind: AssetKind,
    /// Bytes of the file, or of all files of the tree.
    pub bytes: u64,
    /// Its name: SHA-256 of the file or of the tree's manifest, hexadecimal.
    pub sha256: String,
}

/// Kinds of assets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AssetKind {
    /// One file.
    File,
    /// A directory with all its content.
    Tree,
}

impl AssetKind {
    /// Returns the word in documents, tables and addresses.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Tree => "tree",
        }
    }
}

impl FromStr for AssetKind {
    type Err = crate::UnknownWord;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::File, Self::Tree]
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or_else(|| crate::UnknownWord {
                kind: "kind of asset",
                text: text.to_owned(),
                known: "file, tree",
            })
    }
}

/// One file of a tree, which is one line of its manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestLine {
    /// SHA-256 of the file, hexadecimal.
    pub sha256: String,
    /// Length in bytes.
    pub bytes: u64,
    /// Path below the tree.
    pub path: String,
}

impl fmt::Display for ManifestLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.sha256, self.bytes, self.path)
    }
}

/// The error for a line that is not in the form of a manifest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a line of a manifest")]
pub struct NotALine(String);

impl FromStr for ManifestLine {
    type Err = NotALine;

    fn from_str(line: &str) -> Result<Self, NotALine> {
        let not_one = || NotALine(line.chars().take(100).collect());
        let mut words = line.splitn(3, ' ');
        let (Some(sha256), Some(bytes), Some(path)) = (words.next(), words.next(), words.next()) else {
            return Err(not_one());
        };
        let bytes = bytes.parse().map_err(|_| not_one())?;
        if !is_sha256(sha256) || !is_inner_path(path) {
            return Err(not_one());
        }
        Ok(Self {
            sha256: sha256.to_owned(),
            bytes,
            path: path.to_owned(),
        })
    }
}

/// Whether `text` is a SHA-256 in the form that names assets: 64 lower-case hexadecimal digits.
#[must_use]
pub fn is_sha256(text: &str) -> bool {
    text.len() == 64
        && text
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// Whether `path` stays below its base directory and fits into a manifest line.
#[must_use]
pub fn is_inner_path(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    !path.is_empty()
        && path.len() <= MAX_PATH
        && !path.chars().any(char::is_control)
        && parts.all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_is_read_as_it_is_written() {
        let line = format!("{} 17 a dir/with blanks.npy", "0f".repeat(32));
        assert_eq!(line.parse::<ManifestLine>().unwrap().to_string(), line);
    }

    #[test]
    fn manifest_rejects_paths_outside_the_tree() {
        let hash = "0f".repeat(32);
        for path in [
            "../x",
            "/etc/passwd",
            "a/../../x",
            "a\0b",
            "",
            "./a",
            &"x/".repeat(1000),
        ] {
            let line = format!("{hash} 1 {path}");
            assert!(line.parse::<ManifestLine>().is_err(), "{path:?}");
        }
        for line in [
            "",
            "x 1 a",
            &format!("{hash} -1 a"),
            &format!("{} 1 a", "0F".repeat(32)),
        ] {
            assert!(line.parse::<ManifestLine>().is_err(), "{line:?}");
        }
    }

    proptest! {
        #[test]
        fn garbage_is_refused_or_written_back_as_it_was(line in ".*") {
            if let Ok(read) = line.parse::<ManifestLine>() {
                prop_assert_eq!(read.to_string().parse::<ManifestLine>(), Ok(read));
            }
        }
    }
}
