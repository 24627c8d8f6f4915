//! Checks for obstacles to an upload (`repository_checks.sh`): links, hidden files, spaces in names and large files.
//!
//! It also reports what an archive would change: names that are not UTF-8, and entries that are not files.

use std::{
    fmt, fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use regatta_submission_check::files::{At, FileError};

/// The directories of a submission that are packed if they exist.
pub const DIVISIONS: [&str; 3] = ["closed", "open", "network"];
/// The largest file that the result repositories accept, in bytes.
const MAX_FILE: u64 = 50 << 20;

/// A path that cannot be uploaded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PackFinding {
    /// The path relative to the submission's root.
    pub path: PathBuf,
    /// The reason.
    pub kind: PackFindingKind,
}

/// The reason why a path cannot be uploaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PackFindingKind {
    /// A symbolic link.
    Link,
    /// A name with a leading dot.
    Hidden,
    /// A name with white space.
    Space,
    /// A name that is not UTF-8 or has control characters.
    Name,
    /// A file of more than 50 MiB.
    Big {
        /// Its length in bytes.
        bytes: u64,
    },
    /// A device, socket or pipe.
    NoFile,
}

/// Lists the findings of the submission in `input`, by path.
///
/// # Errors
/// Returns an error if a directory cannot be listed.
pub fn hygiene(input: &Path) -> Result<Vec<PackFinding>, FileError> {
    let mut findings = Vec::new();
    let mut ahead: Vec<_> = DIVISIONS.into_iter().map(PathBuf::from).collect();
    while let Some(below) = ahead.pop() {
        let path = input.join(&below);
        let Ok(metadata) = fs::symlink_metadata(&path) else {
            // The division does not exist. Any other path was just listed, and packing it reports the error.
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
        } else if metadata.len() > MAX_FILE {
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
            PackFindingKind::Name => write!(
                f,
                "{path:?} has a name with characters other than printable text: rename it"
            ),
            PackFindingKind::Big { bytes } => write!(
                f,
                "{path} has {} MiB, and the limit is 50: truncate or remove it",
                bytes.div_ceil(1 << 20)
            ),
            PackFindingKind::NoFile => write!(f, "{path} is neither file nor directory: remove it"),
        }
    }
}
