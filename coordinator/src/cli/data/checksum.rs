//! Compares a file with its published size and checksum.

use std::{
    fs::File,
    io::{self, BufReader, Read as _},
    path::Path,
};

use md5::Md5;
use regatta_fsutil::{
    hash::{hex, sha256_of_file},
    regular_file,
};
use regatta_types::benchmark::{Download, FetchKind};
use sha2::Digest as _;

use crate::exit::Failure;

/// The comparison of a file with its published checksum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChecksumComparison {
    /// The file has the checksum of this algorithm.
    Equal(&'static str),
    /// No checksum is published, or one of an unknown algorithm.
    NotPublished,
    /// The file is another one.
    Differs(String),
}

impl ChecksumComparison {
    /// Returns the comparison in words.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Equal(algorithm) => format!("{algorithm} as published"),
            Self::NotPublished => "no checksum is published".to_owned(),
            Self::Differs(why) => format!("not the published file: {why}"),
        }
    }
}

/// Compares the file at `path` with a download's published size and checksum.
///
/// # Errors
/// Returns an error when the file cannot be read.
pub(super) fn check(download: &Download, path: &Path) -> io::Result<ChecksumComparison> {
    let length = path.metadata()?.len();
    // The published size of several files is not that of an archive.
    let is_archive = matches!(download.fetch, Some(FetchKind::Archive(_)));
    let expected = download.bytes.filter(|_| !is_archive && download.files == 1);
    if let Some(expected) = expected.filter(|&expected| expected != length) {
        return Ok(ChecksumComparison::Differs(format!(
            "it has {length} bytes, the published one {expected}"
        )));
    }
    let (name, expected, found) = match download.checksum() {
        Some(("sha256", expected)) => ("SHA-256", expected, sha256_of_file(path)?.hex()),
        Some(("md5", expected)) => ("MD5", expected, md5_of_file(path)?),
        _ => return Ok(ChecksumComparison::NotPublished),
    };
    Ok(if found == expected {
        ChecksumComparison::Equal(name)
    } else {
        ChecksumComparison::Differs(format!("its {name} is {found}, the published one {expected}"))
    })
}

/// Describes how a file differs from a download's published checksum. Returns `None` when they are equal, or when no checksum is published.
///
/// # Errors
/// Returns a failure when the file cannot be read.
pub(in crate::cli) fn published_problem(download: &Download, path: &Path) -> Result<Option<String>, Failure> {
    match check(download, path) {
        Ok(ChecksumComparison::Differs(why)) => Ok(Some(why)),
        Ok(_) => Ok(None),
        Err(error) => Err(Failure::could_not(format!(
            "cannot read {}: {error}",
            path.display()
        ))),
    }
}

fn md5_of_file(path: &Path) -> io::Result<String> {
    let mut file: BufReader<File> = BufReader::new(regular_file::open(path)?);
    let (mut block, mut hash) = (vec![0; 1 << 20], Md5::new());
    loop {
        match file.read(&mut block)? {
            0 => return Ok(hex(&hash.finalize())),
            count => hash.update(block.get(..count).unwrap_or_default()),
        }
    }
}
