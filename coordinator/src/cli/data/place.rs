//! The path of a download below the scratch directory, and whether it is complete.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use regatta_fsutil::atomic_file::is_temporary;
use regatta_prep::{ImageRequest, check_images, labels_among};
use regatta_text::ErrorChain;
use regatta_types::benchmark::{Benchmark, Download, DownloadPurpose, FetchKind, Prep};

use super::{
    checksum::{ChecksumComparison, check},
    transfer::PART,
};

/// The presence of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum FileState {
    Present,
    Missing,
    /// Preparation was interrupted or still runs, or files are missing.
    Incomplete,
    /// The file comes with Regatta and is installed when it is needed.
    Bundled,
}

impl FileState {
    pub(in crate::cli) const fn word(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Missing => "missing",
            Self::Incomplete => "incomplete",
            Self::Bundled => "bundled",
        }
    }
}

/// The path of a download, and whether it is complete.
#[derive(Debug)]
pub(in crate::cli) struct DownloadPlace {
    pub(in crate::cli) path: PathBuf,
    pub(in crate::cli) state: FileState,
    /// The problem with the download.
    pub(in crate::cli) problem: Option<String>,
    /// Whether the file is not the published one.
    pub(super) is_other: bool,
}

impl DownloadPlace {
    /// Looks for a download below the scratch directory. Images are compared with their labels by name.
    pub(in crate::cli) fn find(download: &Download, benchmark: &Benchmark, scratch: &Path) -> Self {
        let path = scratch.join(&download.path);
        let place = |state, problem| Self {
            path: path.clone(),
            state,
            problem,
            is_other: false,
        };
        let is_empty = || count_files(&path).is_ok_and(|count| count == 0);
        let has_labels = matches!(benchmark.prep, Some(Prep::JpegImages(_)));
        let has_volumes = matches!(benchmark.prep, Some(Prep::Volumes(_) | Prep::Speech(_)));
        let has_images =
            has_labels || has_volumes || benchmark.prep.as_ref().and_then(Prep::annotations).is_some();
        match download.purpose {
            DownloadPurpose::Labels if has_labels => {
                let found = path.parent().and_then(labels_among);
                Self {
                    state: present(found.is_some()),
                    path: found.unwrap_or_else(|| path.clone()),
                    problem: None,
                    is_other: false,
                }
            }
            _ if !download.path.ends_with('/') => place(present(path.is_file()), None),
            _ if !path.is_dir() || is_empty() => place(FileState::Missing, None),
            DownloadPurpose::Dataset if has_images => match images_problem(benchmark, &path) {
                None => place(FileState::Present, None),
                problem => place(FileState::Incomplete, problem),
            },
            _ => match count_files(&path) {
                Ok(count) if count >= download.files => place(FileState::Present, None),
                Ok(count) => {
                    let problem = format!("{count} of {} files are present", download.files);
                    place(FileState::Incomplete, Some(problem))
                }
                Err(error) => place(FileState::Incomplete, Some(error.to_string())),
            },
        }
    }
}

impl DownloadPlace {
    /// Compares a single file that is here with its published checksum.
    pub(super) fn verified(mut self, download: &Download) -> Self {
        let is_file = !download.path.ends_with('/') && !matches!(download.fetch, Some(FetchKind::Archive(_)));
        if is_file && self.state == FileState::Present {
            let checked = check(download, &self.path);
            self.is_other = matches!(checked, Ok(ChecksumComparison::Differs(_)));
            self.problem = match checked {
                Ok(ChecksumComparison::Equal(_)) => None,
                Ok(other) => Some(other.words()),
                Err(error) => Some(error.to_string()),
            };
        }
        self
    }
}

/// Describes how the model below the scratch directory differs from the published one. `None` when it is the same, missing, or when no
/// checksum of this file is published.
pub(in crate::cli) fn model_problem(benchmark: &Benchmark, scratch: &Path) -> Option<String> {
    let is_model = |download: &&Download| {
        download.purpose == DownloadPurpose::Model && download.path == benchmark.model.file
    };
    let download = benchmark.downloads.iter().find(is_model)?;
    let path = scratch.join(&download.path);
    let problem = match check(download, &path) {
        Ok(checked @ ChecksumComparison::Differs(_)) => format!("is {}", checked.words()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => format!("cannot be read: {error}"),
        Ok(_) | Err(_) => return None,
    };
    Some(format!("the model {} {problem}", path.display()))
}

/// Returns the number of entries of a directory without temporary ones, for example the file that is being unpacked or copied.
pub(in crate::cli) fn count_files(directory: &Path) -> io::Result<usize> {
    let mut count = 0;
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        let is_part = Path::new(&name)
            .extension()
            .is_some_and(|extension| extension == PART);
        count += usize::from(!is_part && !is_temporary(&name));
    }
    Ok(count)
}

const fn present(is_present: bool) -> FileState {
    match is_present {
        true => FileState::Present,
        false => FileState::Missing,
    }
}

/// Describes the problem with a directory of images.
fn images_problem(benchmark: &Benchmark, images: &Path) -> Option<String> {
    let request = ImageRequest {
        benchmark,
        form: benchmark.form(),
        quantised: None,
        data: images,
        labels: None,
        calibration: None,
        accepts_damaged: false,
    };
    let error = check_images(&request).err()?;
    Some(ErrorChain(&error).to_string())
}
