//! What can keep a submission from being packed or unpacked.

use std::{fmt::Write as _, io, path::PathBuf};

use regatta_text::Escaped;

use super::PackFinding;
use crate::{DraftError, files::FileError};

/// A package that was not made or not opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackError {
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The unpacked tree cannot be written.
    #[error(transparent)]
    Draft(#[from] DraftError),
    /// The submitter's name cannot be part of a file's name.
    #[error("`{submitter}` cannot be part of a file name: use letters, digits, `_`, `-` and `.`")]
    NoName {
        /// The name.
        submitter: String,
    },
    /// The tree has none of the divisions.
    #[error("{input} has none of closed/, open/, network/: name the submission's root", input = input.display())]
    NoSubmission {
        /// The root that was given.
        input: PathBuf,
    },
    /// The package would contain itself.
    #[error("the package would lie in the submission itself, at {directory}: name another directory", directory = directory.display())]
    Inside {
        /// The directory that was given.
        directory: PathBuf,
    },
    /// Things that cannot be uploaded.
    #[error("the submission cannot be uploaded as it is:{list}", list = list(findings))]
    Unclean {
        /// All of them.
        findings: Vec<PackFinding>,
    },
    /// There is no `openssl` to encrypt with.
    #[error("cannot start openssl, which does the encryption: install the package `openssl`")]
    NoOpenssl {
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// `openssl` gave up.
    #[error("openssl could not {action} {path}: {messages}", path = path.display())]
    Openssl {
        /// Write or decrypt.
        action: &'static str,
        /// The package.
        path: PathBuf,
        /// What it said.
        messages: String,
    },
    /// The archive cannot be put together.
    #[error("cannot pack {path}", path = path.display())]
    Archive {
        /// What was being packed.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file changed while it was packed.
    #[error("{path} changed while it was packed: pack again when nothing writes to the submission", path = path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The checksum file is not what `sha1sum` prints.
    #[error("{path} is no line of sha1sum", path = path.display())]
    ChecksumFile {
        /// The file.
        path: PathBuf,
    },
    /// The package is not the one that was packed.
    #[error("{path} has the SHA-1 {found}, not {stated}: it is damaged or another one", path = path.display())]
    Checksum {
        /// The package.
        path: PathBuf,
        /// Its SHA-1.
        found: String,
        /// The one in the checksum file.
        stated: String,
    },
    /// What came out of the decryption is no archive: nearly always the password.
    #[error("{path} does not open: the password is wrong, or it is no package", path = path.display())]
    NotAnArchive {
        /// The package.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// An archive with something that no submission has.
    #[error("the package holds `{path}`, which is no file or directory of a submission: nothing was unpacked", path = Escaped(path.display()))]
    Hostile {
        /// Its path in the archive.
        path: PathBuf,
    },
    /// An archive that unpacks to more than it may.
    #[error(
        "the package unpacks to more than {bytes} bytes or {entries} files and directories: nothing was unpacked; hint: allow \
         more with --max-gib or --max-entries if you trust it"
    )]
    TooLarge {
        /// Bytes that were allowed.
        bytes: u64,
        /// Files and directories that were allowed.
        entries: u64,
    },
    /// The place to unpack to is taken.
    #[error("{path} exists already: name a new directory", path = path.display())]
    Exists {
        /// The directory.
        path: PathBuf,
    },
}

/// The flaws, one a line, not more than a screen of them.
fn list(findings: &[PackFinding]) -> String {
    const SHOWN: usize = 20;
    let mut text = String::new();
    for finding in findings.iter().take(SHOWN) {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n  {}", Escaped(finding));
    }
    if findings.len() > SHOWN {
        let _ = write!(text, "\n  and {} more", findings.len() - SHOWN);
    }
    text
}
