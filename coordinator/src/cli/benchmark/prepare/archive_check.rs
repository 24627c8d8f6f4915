//! Compares an archive with the data set that it should be, before anything of it is unpacked. A tar or zip is compared by the list of its files,
//! which takes a second; a compressed tar by its published checksum.

use std::path::{Path, PathBuf};

use regatta_archives::{Archive, Entry};
use regatta_datasets::val_map;
use regatta_prep::labels_among;
use regatta_types::benchmark::{Benchmark, Download, DownloadPurpose, FetchKind, Prep};

use super::offers::LABEL_FILES;
use crate::{cli::data::published_problem, exit::Failure};

/// The most that a compressed archive without a published size may grow: texts that compress well do by less.
const MAX_GROWTH: u64 = 16;
/// An allowance for small archives.
const MIN_LIMIT: u64 = 64 << 20;

/// Returns the directory into which a download's archive is unpacked.
pub(super) fn unpack_directory(download: &Download, scratch: &Path) -> PathBuf {
    match &download.fetch {
        Some(FetchKind::Archive(into)) => scratch.join(into),
        _ if download.path.ends_with('/') => scratch.join(&download.path),
        _ => scratch.join(&download.path).with_file_name(""),
    }
}

/// Returns whether a file of a download's archive is needed.
pub(super) fn is_selected(download: &Download, benchmark: &Benchmark, scratch: &Path, name: &str) -> bool {
    if download.path.ends_with('/') {
        return true;
    }
    if is_image_labels(download, benchmark) {
        return LABEL_FILES.contains(&name);
    }
    unpack_directory(download, scratch).join(name) == scratch.join(&download.path)
}

fn is_image_labels(download: &Download, benchmark: &Benchmark) -> bool {
    download.purpose == DownloadPurpose::Labels && matches!(benchmark.prep, Some(Prep::JpegImages(_)))
}

/// Checks an archive, and returns the bytes of its selected files, or the most that they can have.
///
/// # Errors
/// A sentence that says why the archive is not the published one.
pub(super) fn check(
    archive: &Archive,
    download: &Download,
    benchmark: &Benchmark,
    scratch: &Path,
) -> Result<u64, Failure> {
    let path = archive.path().display();
    let refused = |reason: String| {
        Failure::usage(anyhow::anyhow!("{path} is not the published archive: {reason}"))
            .hint(format!("it should be {}, from {}", download.title, download.url))
    };
    let Some(entries) = archive.entries().map_err(Failure::usage)? else {
        return match published_problem(download, archive.path())? {
            Some(problem) => Err(refused(problem)),
            None => Ok(most_bytes(archive, download)),
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
    Ok(selected.iter().map(|entry| entry.bytes).sum())
}

/// Checks that the files are a data set's images, at the root of the archive.
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
    // Labels that cannot be read are an error of the preparation.
    let names = labels
        .and_then(|labels| val_map::names(labels).ok())
        .unwrap_or_default();
    let has: std::collections::HashSet<&str> = found.iter().map(|entry| entry.name.as_str()).collect();
    match names.iter().find(|name| !has.contains(name.as_str())) {
        Some(missing) => Err(format!("it does not have {missing}, which the labels name")),
        None => Ok(()),
    }
}

/// Returns the most bytes that the files of a compressed archive may have.
pub(super) fn most_bytes(archive: &Archive, download: &Download) -> u64 {
    match download.bytes {
        Some(bytes) => bytes.saturating_add(bytes / 4).saturating_add(MIN_LIMIT),
        None => archive
            .bytes()
            .saturating_mul(MAX_GROWTH)
            .saturating_add(MIN_LIMIT),
    }
}
