//! What keeps a tree from being uploaded (`repository_checks.sh`): links, hidden files, spaces in names, big files; and
//! what would not arrive as it is: names that are no text, things that are no files.

use std::{
    fmt, fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::files::{At, FileError};

/// The directories of a submission that are packed, where they exist.
pub const DIVISIONS: [&str; 3] = ["closed", "open", "network"];
/// The largest file that the result repositories take, in bytes.
const LARGEST_FILE: u64 = 50 << 20;

/// A path that cannot be uploaded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PackFinding {
    /// From the submission's root on.
    pub path: PathBuf,
    /// What is wrong with it.
    pub kind: PackFindingKind,
}

/// What is wrong with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PackFindingKind {
    /// A symbolic link.
    Link,
    /// A name that begins with a dot.
    Hidden,
    /// A name with white space.
    Space,
    /// A name that is no UTF-8 or has control characters.
    Name,
    /// A file of more than 50 MiB.
    Big {
        /// Its length.
        bytes: u64,
    },
    /// A device, socket or pipe.
    NoFile,
}

/// Lists the findings of the submission in `input`, by path.
///
/// # Errors
/// When a directory cannot be listed.
pub fn hygiene(input: &Path) -> Result<Vec<PackFinding>, FileError> {
    let mut findings = Vec::new();
    let mut ahead: Vec<_> = DIVISIONS.into_iter().map(PathBuf::from).collect();
    while let Some(below) = ahead.pop() {
        let path = input.join(&below);
        let Ok(metadata) = fs::symlink_metadata(&path) else {
            // A division that is not there; anything else was listed a moment ago and fails when it is packed.
            continue;
        };
        let mut finding = |kind| {
            findings.push(PackFinding {
                path: below.clone(),
                kind,
            });
        };
        name_flaws(&below, &mut finding);
        if metadata.is_symlink() {
            finding(PackFindingKind::Link);
        } else if metadata.is_dir() {
            for entry in fs::read_dir(&path).at("list", &path)? {
                ahead.push(below.join(entry.at("list", &path)?.file_name()));
            }
        } else if !metadata.is_file() {
            finding(PackFindingKind::NoFile);
        } else if metadata.len() > LARGEST_FILE {
            finding(PackFindingKind::Big {
                bytes: metadata.len(),
            });
        }
    }
    findings.sort();
    Ok(findings)
}

fn name_flaws(path: &Path, finding: &mut impl FnMut(PackFindingKind)) {
    let name = path.file_name().unwrap_or_default();
    if name.as_bytes().starts_with(b".") {
        finding(PackFindingKind::Hidden);
    }
    match name.to_str() {
        Some(text) if text.chars().any(char::is_control) => finding(PackFindingKind::Name),
        Some(text) if text.chars().any(char::is_whitespace) => finding(PackFindingKind::Space),
        Some(_) => {}
        None => finding(PackFindingKind::Name),
    }
}

impl fmt::Display for PackFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.to_string_lossy();
        match self.kind {
            PackFindingKind::Link => write!(f, "{path} is a symbolic link: put the file itself there"),
            PackFindingKind::Hidden => write!(
                f,
                "{path} is hidden (its name begins with a dot): remove or rename it"
            ),
            PackFindingKind::Space => write!(f, "{path} has a space in its name: rename it"),
            PackFindingKind::Name => write!(f, "{path:?} has a name that is no plain text: rename it"),
            PackFindingKind::Big { bytes } => write!(
                f,
                "{path} has {} MiB, and the limit is 50: truncate or remove it",
                bytes.div_ceil(1 << 20)
            ),
            PackFindingKind::NoFile => write!(f, "{path} is neither file nor directory: remove it"),
        }
    }
}
