//! `regatta data fetch`: downloads a benchmark's free files to their places. Does not fetch files that a publisher provides only on request, and does
//! not unpack archives.

use std::{
    fs,
    path::{Path, PathBuf},
};

use regatta_fsutil::atomic_file::rename_flushed;
use regatta_text::quote_for_shell;
use regatta_types::{
    ExitCode,
    benchmark::{Benchmark, Download, FetchKind},
};
use serde_json::{Value, json};

use super::{
    checksum::{ChecksumComparison, check},
    place::{DownloadPlace, FileState},
    transfer::{self, PART, PartFile, Size, TransferError},
};
use crate::{
    cli::{Context, context::tell},
    exit::{CommandResult, Failure},
};

/// The directory of archives below the scratch directory.
pub(in crate::cli) const ARCHIVES: &str = "downloads";

/// The result of a download.
struct Fetched<'a> {
    download: &'a Download,
    /// The path of its file; `None` when it is not fetched.
    path: Option<PathBuf>,
    state: &'static str,
    checked: Option<ChecksumComparison>,
    /// The command that unpacks an archive.
    unpack: Option<String>,
}

/// Fetches the free downloads of a benchmark to the scratch directory.
pub(super) fn run(benchmark: &Benchmark, scratch: &Path, context: &Context) -> CommandResult {
    let mut results = Vec::new();
    for download in &benchmark.downloads {
        let Some(kind) = &download.fetch else {
            results.push(Fetched {
                download,
                path: None,
                state: "not fetched",
                checked: None,
                unpack: None,
            });
            continue;
        };
        results.push(fetch(download, kind, benchmark, scratch, context)?);
    }
    let documents: Vec<Value> = results.iter().map(Fetched::document).collect();
    let document = json!({ "benchmark": benchmark.name, "scratch": scratch, "downloads": documents });
    context.print(&document, || {
        if results.is_empty() {
            return format!(
                "{} has nothing to download: its files are part of this program",
                benchmark.name
            );
        }
        results.iter().map(Fetched::text).collect::<Vec<_>>().join("\n")
    })?;
    Ok(ExitCode::Success)
}

/// Fetches a download. Returns the path of its file or archive, or `None` when it is not freely available.
///
/// # Errors
/// Returns an error when it cannot be downloaded, or is not the published file. The next call continues the download.
pub(in crate::cli) fn fetch_file(
    download: &Download,
    benchmark: &Benchmark,
    scratch: &Path,
    context: &Context,
) -> Result<Option<PathBuf>, Failure> {
    let Some(kind) = &download.fetch else {
        return Ok(None);
    };
    Ok(fetch(download, kind, benchmark, scratch, context)?.path)
}

fn fetch<'a>(
    download: &'a Download,
    kind: &FetchKind,
    benchmark: &Benchmark,
    scratch: &Path,
    context: &Context,
) -> Result<Fetched<'a>, Failure> {
    let path = match kind {
        FetchKind::File => scratch.join(&download.path),
        FetchKind::Archive(_) => scratch.join(ARCHIVES).join(download.published_name()),
    };
    let unpack = match kind {
        FetchKind::File => None,
        FetchKind::Archive(into) => Some(unpack_command(&path, &scratch.join(into))),
    };
    let is_there = path.is_file();
    if !is_there && unpack.is_some() {
        let place = DownloadPlace::find(download, benchmark, scratch);
        if place.state == FileState::Present {
            remove_abandoned_part(&path)?;
            return Ok(Fetched {
                download,
                path: Some(place.path),
                state: "unpacked",
                checked: None,
                unpack: None,
            });
        }
    }
    let checked = if is_there {
        remove_abandoned_part(&path)?;
        verify(download, &path, false)?
    } else {
        transferred(download, &path, context)?
    };
    Ok(Fetched {
        download,
        checked: Some(checked),
        path: Some(path),
        state: if is_there { "present" } else { "fetched" },
        unpack,
    })
}

/// Downloads a file that does not exist yet, and checks it.
fn transferred(download: &Download, path: &Path, context: &Context) -> Result<ChecksumComparison, Failure> {
    let part = PartFile::lock(&path.with_added_extension(PART))?;
    // Another process may have fetched it since. The lock is held until the file has its name.
    if path.is_file() {
        remove(&part.path)?;
        return verify(download, path, false);
    }
    tell(&format!("{}: {}", download.title, download.url));
    transfer::download(&download.url, &part, size(download), context.is_lively())?;
    let checked = verify(download, &part.path, true)?;
    rename_flushed(&part.path, path)
        .map_err(|error| Failure::could_not(format!("cannot rename {}: {error}", part.path.display())))?;
    Ok(checked)
}

/// Returns the sizes that a file may have: the published one, of an archive the one of its unpacked files with an allowance for its own
/// tables, since pictures and sound do not become smaller.
fn size(download: &Download) -> Size {
    match (&download.fetch, download.bytes) {
        (Some(FetchKind::File), bytes) => Size {
            exact: bytes,
            most: bytes,
        },
        (_, bytes) => Size {
            exact: None,
            most: bytes.map(|bytes| bytes.saturating_add(bytes / 4).saturating_add(64 << 20)),
        },
    }
}

/// Removes the part of a file that an earlier command downloaded, because the file has been got in another way since. Keeps the part of a download
/// that is running.
///
/// # Errors
/// Returns an error when the part cannot be removed.
pub(in crate::cli) fn remove_abandoned_part(path: &Path) -> Result<(), Failure> {
    let part = path.with_added_extension(PART);
    if !part.is_file() {
        return Ok(());
    }
    match PartFile::lock(&part) {
        Ok(part) => remove(&part.path),
        Err(TransferError::Busy(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn remove(path: &Path) -> Result<(), Failure> {
    fs::remove_file(path)
        .map_err(|error| Failure::could_not(format!("cannot remove {}: {error}", path.display())))
}

/// Checks a file. Removes a wrong one if it was just downloaded, because a repetition would only continue it.
fn verify(download: &Download, path: &Path, is_new: bool) -> Result<ChecksumComparison, Failure> {
    let checked = check(download, path)
        .map_err(|error| Failure::could_not(format!("cannot read {}: {error}", path.display())))?;
    let ChecksumComparison::Differs(_) = &checked else {
        return Ok(checked);
    };
    let sentence = format!("{} is {}", path.display(), checked.words());
    Err(if is_new {
        remove(path)?;
        Failure::could_not(sentence).hint(format!("it was removed; see what is at {}", download.url))
    } else {
        Failure::could_not(sentence).hint("move it, then run the same command")
    })
}

fn unpack_command(archive: &Path, into: &Path) -> String {
    let is_zip = archive.extension().is_some_and(|ending| ending == "zip");
    let (archive, into) = [archive, into]
        .map(|path| quote_for_shell(&path.display().to_string()))
        .into();
    let unpack = if is_zip {
        format!("unzip -q {archive} -d {into}")
    } else {
        format!("tar -xf {archive} -C {into}")
    };
    format!("mkdir -p {into} && {unpack}")
}

impl Fetched<'_> {
    fn document(&self) -> Value {
        json!({
            "title": self.download.title,
            "url": self.download.url,
            "state": self.state,
            "path": self.path,
            "checked": self.checked.as_ref().map(ChecksumComparison::words),
            "unpack": self.unpack,
        })
    }

    fn text(&self) -> String {
        let Some(path) = &self.path else {
            let reason = self
                .download
                .terms
                .as_deref()
                .unwrap_or("its page has more than one file");
            return format!(
                "not fetched: {}\n  from {} ({reason})",
                self.download.title, self.download.url
            );
        };
        let mut text = format!("{}: {}", self.state, path.display());
        if let Some(checked) = &self.checked {
            text.push_str(&format!(" ({})", checked.words()));
        }
        if let Some(command) = &self.unpack {
            text.push_str(&format!("\n  then: {command}"));
        }
        text
    }
}
