//! Checks that an archive is the expected data set before it is unpacked. A tar or zip is checked by its list of files, which takes a second; a
//! compressed tar by its published checksum.

use std::{
    fs,
    path::{Path, PathBuf},
};

use regatta_archives::{Archive, Entry};
use regatta_datasets::val_map;
use regatta_prep::labels_among;
use regatta_types::benchmark::{Benchmark, Download, DownloadPurpose, FetchKind, JpegImages, Prep};

use super::sample_files::present_bytes;
use crate::{cli::data::published_problem, exit::Failure};

/// The maximum ratio of unpacked to compressed size for archives without a published size. Text that compresses well stays below it.
const MAX_GROWTH: u64 = 16;
/// The minimum limit on the unpacked size, for small archives.
const MIN_LIMIT: u64 = 64 << 20;

/// The size of the files that an archive is unpacked to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct UnpackedSize {
    /// The size of all selected files in bytes, or an upper bound for a compressed tar.
    pub(super) bytes: u64,
    /// The size of those that exist already.
    pub(super) present: u64,
}

/// Returns the directory into which a download's archive is unpacked.
pub(super) fn unpack_directory(download: &Download, scratch: &Path) -> PathBuf {
    match &download.fetch {
        Some(FetchKind::Archive(into)) => scratch.join(into),
        _ if download.path.ends_with('/') => scratch.join(&download.path),
        _ => scratch.join(&download.path).with_file_name(""),
    }
}

/// Returns whether a file in a download's archive is needed.
pub(super) fn is_selected(download: &Download, benchmark: &Benchmark, scratch: &Path, name: &str) -> bool {
    if download.path.ends_with('/') {
        return true;
    }
    if is_image_labels(download, benchmark) {
        return JpegImages::LABEL_FILES.contains(&name);
    }
    unpack_directory(download, scratch).join(name) == scratch.join(&download.path)
}

fn is_image_labels(download: &Download, benchmark: &Benchmark) -> bool {
    download.purpose == DownloadPurpose::Labels && matches!(benchmark.prep, Some(Prep::JpegImages(_)))
}

/// Checks an archive. Returns the size of its selected files.
///
/// # Errors
/// Returns a sentence that says why the archive is not the published one.
pub(super) fn check(
    archive: &Archive,
    download: &Download,
    benchmark: &Benchmark,
    scratch: &Path,
) -> Result<UnpackedSize, Failure> {
    let path = archive.path().display();
    let refused = |reason: String| {
        Failure::usage(anyhow::anyhow!("{path} is not the published archive: {reason}"))
            .hint(format!("it should be {}, from {}", download.title, download.url))
    };
    let Some(entries) = archive.entries().map_err(Failure::usage)? else {
        return match published_problem(download, archive.path())? {
            Some(problem) => Err(refused(problem)),
            None => Ok(UnpackedSize {
                bytes: most_bytes(archive, download),
                present: unpacked_bytes(download, scratch),
            }),
        };
    };
    let selected: Vec<&Entry> = entries
        .iter()
        .filter(|entry| is_selected(download, benchmark, scratch, &entry.name))
        .collect();
    match &benchmark.prep {
        Some(Prep::JpegImages(kind)) if download.purpose == DownloadPurpose::Dataset => {
            let labels = labels_among(&unpack_directory(download, scratch));
            let expected = benchmark.dataset.total_samples;
            expect_images(&selected, expected, kind.source_bytes, labels.as_deref()).map_err(refused)?;
        }
        _ if selected.is_empty() => {
            let name = download.path.rsplit('/').next().unwrap_or_default();
            return Err(refused(format!("it has no file `{name}`")));
        }
        _ if download.path.ends_with('/') && selected.len() < download.files => {
            return Err(refused(format!(
                "it has {} files, the published one has {}",
                selected.len(),
                download.files
            )));
        }
        _ => {}
    }
    let directory = unpack_directory(download, scratch);
    // Unpacking skips files of the right size.
    let is_present = |entry: &&&Entry| {
        let found = fs::symlink_metadata(directory.join(&entry.name));
        found.is_ok_and(|found| found.is_file() && found.len() == entry.bytes)
    };
    Ok(UnpackedSize {
        bytes: selected.iter().map(|entry| entry.bytes).sum(),
        present: selected.iter().filter(is_present).map(|entry| entry.bytes).sum(),
    })
}

/// Returns the size in bytes of the files of a download that are unpacked already.
pub(super) fn unpacked_bytes(download: &Download, scratch: &Path) -> u64 {
    present_bytes(&scratch.join(&download.path))
}

/// Checks that the archive contains a data set's images at its root.
fn expect_images(
    found: &[&Entry],
    expected: usize,
    bytes: Option<u64>,
    labels: Option<&Path>,
) -> Result<(), String> {
    if found.len() != expected {
        return Err(format!(
            "it has {} files, the published one has {expected}",
            found.len()
        ));
    }
    if let Some(inside) = found.iter().find(|entry| entry.name.contains('/')) {
        return Err(format!("`{}` is in a directory, the images are not", inside.name));
    }
    let total: u64 = found.iter().map(|entry| entry.bytes).sum();
    if let Some(expected) = bytes.filter(|&expected| expected != total) {
        return Err(format!(
            "its files have {total} bytes, the published ones have {expected}"
        ));
    }
    // Labels that cannot be read are reported by the preparation.
    let names = labels
        .and_then(|labels| val_map::names(labels).ok())
        .unwrap_or_default();
    let has: std::collections::HashSet<&str> = found.iter().map(|entry| entry.name.as_str()).collect();
    match names.iter().find(|name| !has.contains(name.as_str())) {
        Some(missing) => Err(format!("it does not have {missing}, which the labels name")),
        None => Ok(()),
    }
}

/// Returns the maximum total size in bytes of the files in a compressed archive.
pub(super) fn most_bytes(archive: &Archive, download: &Download) -> u64 {
    match download.bytes {
        Some(bytes) => bytes.saturating_add(bytes / 4).saturating_add(MIN_LIMIT),
        None => archive
            .bytes()
            .saturating_mul(MAX_GROWTH)
            .saturating_add(MIN_LIMIT),
    }
}
