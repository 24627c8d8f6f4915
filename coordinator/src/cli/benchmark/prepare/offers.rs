//! The archives, files and directories that the user names with `--from`, and the downloads that they replace.

use std::path::{Path, PathBuf};

use regatta_archives::{Archive, ArchiveError};
use regatta_types::benchmark::{Benchmark, Download, DownloadPurpose, JpegImages, Prep};

use crate::exit::Failure;

#[derive(Debug)]
pub(super) struct Offers(Vec<Offer>);

/// An archive, file or directory that the user named.
#[derive(Debug)]
pub(super) struct Offer {
    pub(super) path: PathBuf,
    pub(super) content: Content,
}

/// The kind of a path.
#[derive(Debug)]
pub(super) enum Content {
    Archive(Archive),
    /// A directory with published weights, and their files.
    Checkpoint(Vec<String>),
    /// Another directory: a data set.
    Directory,
    File,
}

impl Offers {
    /// Determines the kind of each path. `benchmarks` are all that there are.
    pub(super) fn open(paths: &[PathBuf], benchmarks: &[&Benchmark]) -> Result<Self, Failure> {
        let downloads = benchmarks.iter().flat_map(|benchmark| &benchmark.downloads);
        let mut checkpoints: Vec<&[String]> = downloads.map(|download| &download.checkpoint[..]).collect();
        checkpoints.retain(|files| !files.is_empty());
        paths
            .iter()
            .map(|path| Offer::open(path, &checkpoints))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Returns the directory of the data set, if the user named one.
    pub(super) fn directory(&self) -> Option<&Path> {
        let mut directories = self
            .0
            .iter()
            .filter(|offer| matches!(offer.content, Content::Directory));
        directories.next().map(|offer| offer.path.as_path())
    }

    /// Returns the offer for a download: the one with its file name, or else the only other archive, if the download is the data set of the only
    /// benchmark.
    pub(super) fn of(
        &self,
        download: &Download,
        benchmark: &Benchmark,
        is_only_benchmark: bool,
    ) -> Option<&Offer> {
        let is_named = |offer: &&Offer| offer.is_named(download, benchmark);
        if let Some(named) = self.0.iter().find(is_named) {
            return Some(named);
        }
        let is_data = download.purpose == DownloadPurpose::Dataset && download.path.ends_with('/');
        let is_other = |offer: &&Offer| {
            matches!(offer.content, Content::Archive(_))
                && !benchmark
                    .downloads
                    .iter()
                    .any(|other| offer.is_named(other, benchmark))
        };
        let mut others = self.0.iter().filter(is_other);
        let first = others.next().filter(|_| is_data && is_only_benchmark)?;
        others.next().is_none().then_some(first)
    }

    /// Checks that each path belongs to one of the benchmarks.
    ///
    /// # Errors
    /// Returns an error about the first path that does not, with the known names.
    pub(super) fn expect_used(&self, benchmarks: &[&Benchmark]) -> Result<(), Failure> {
        let is_only = benchmarks.len() == 1;
        let directories = self
            .0
            .iter()
            .filter(|offer| matches!(offer.content, Content::Directory));
        if directories.count() > 1 || (self.directory().is_some() && !is_only) {
            return Err(Failure::misuse(
                "a directory is the data set of one benchmark: name one benchmark and one directory",
            ));
        }
        let is_used = |offer: &Offer| {
            benchmarks.iter().any(|benchmark| {
                let mut downloads = benchmark.downloads.iter();
                downloads.any(|download| {
                    let taken = self.of(download, benchmark, is_only);
                    taken.is_some_and(|taken| std::ptr::eq(taken, offer))
                })
            })
        };
        let is_directory = |offer: &Offer| matches!(offer.content, Content::Directory);
        match self
            .0
            .iter()
            .find(|offer| !is_directory(offer) && !is_used(offer))
        {
            None => Ok(()),
            Some(offer) => Err(Failure::misuse(format!(
                "{} is not a file of these benchmarks",
                offer.path.display()
            ))
            .hint(format!("files that they need: {}", known_names(benchmarks)))),
        }
    }
}

impl Offer {
    fn open(path: &Path, checkpoints: &[&[String]]) -> Result<Self, Failure> {
        let content = if path.is_dir() {
            directory_content(path, checkpoints)?
        } else {
            match Archive::open(path) {
                Ok(archive) => Content::Archive(archive),
                Err(ArchiveError::Kind(_)) => Content::File,
                Err(error) => return Err(Failure::usage(error)),
            }
        };
        Ok(Self {
            path: path.to_owned(),
            content,
        })
    }

    /// Returns whether it has the name of the file that a download becomes. Such a file is copied, even if it is an archive, as weights of
    /// PyTorch are.
    pub(super) fn is_the_file(&self, download: &Download) -> bool {
        let own = self.path.file_name().and_then(|name| name.to_str());
        own.is_some_and(|name| name == file_name(&download.path))
    }

    fn is_named(&self, download: &Download, benchmark: &Benchmark) -> bool {
        let own = self.path.file_name().and_then(|name| name.to_str());
        let is_file = |name: &str| own == Some(name);
        match &self.content {
            Content::Checkpoint(files) => download.checkpoint == *files,
            Content::Directory => false,
            Content::Archive(_) => self.is_the_file(download) || archive_names(download).any(is_file),
            Content::File => {
                let is_labels = download.purpose == DownloadPurpose::Labels
                    && matches!(benchmark.prep, Some(Prep::JpegImages(_)));
                self.is_the_file(download) || (is_labels && JpegImages::LABEL_FILES.into_iter().any(is_file))
            }
        }
    }
}

/// Returns what a directory contains: published weights, or a data set.
///
/// # Errors
/// Returns an error when it has some files of weights, but not all.
fn directory_content(path: &Path, checkpoints: &[&[String]]) -> Result<Content, Failure> {
    let mut incomplete = None;
    for files in checkpoints {
        let (present, missing): (Vec<&String>, Vec<&String>) =
            files.iter().partition(|name| path.join(name).is_file());
        match (present.is_empty(), missing.is_empty()) {
            (true, _) => {}
            (_, true) => return Ok(Content::Checkpoint(files.to_vec())),
            _ => incomplete = Some((names(&present), names(&missing))),
        }
    }
    match incomplete {
        None => Ok(Content::Directory),
        Some((present, missing)) => Err(Failure::misuse(format!(
            "{} has {present}, but not {missing}",
            path.display()
        ))
        .hint("download all files of the published weights into one directory")),
    }
}

fn names(files: &[&String]) -> String {
    let files: Vec<&str> = files.iter().map(|name| name.as_str()).collect();
    files.join(" and ")
}

/// Returns the published file names of a download.
fn archive_names(download: &Download) -> impl Iterator<Item = &str> {
    let with_checksum = download.checksums.iter();
    let with_checksum = with_checksum.filter_map(|text| text.rsplit_once(' ').map(|(name, _)| name));
    with_checksum.chain([download.published_name()])
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn known_names(benchmarks: &[&Benchmark]) -> String {
    let downloads = benchmarks.iter().flat_map(|benchmark| &benchmark.downloads);
    let mut names: Vec<&str> = downloads
        .map(|download| match archive_names(download).next() {
            Some(name) if download.path.ends_with('/') => name,
            _ => file_name(&download.path),
        })
        .filter(|name| !name.is_empty())
        .collect();
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use std::{fs, slice};

    use regatta_catalogue::catalogue::Catalogue;

    use super::*;

    #[test]
    fn paths_are_matched_with_downloads_by_name_and_the_rest_refused() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, content: &[u8]| {
            let path = directory.path().join(name);
            fs::write(&path, content).unwrap();
            path
        };
        let catalogue = Catalogue::read(None).unwrap();
        let open = |paths: &[PathBuf]| Offers::open(paths, &catalogue.benchmarks());
        let resnet = catalogue.benchmark("resnet50").unwrap();
        let yolo = catalogue.benchmark("yolo-95").unwrap();
        let of = |offers: &Offers, index: usize, is_only| {
            let offer = offers.of(&resnet.downloads[index], resnet, is_only)?;
            Some(offer.path.file_name().unwrap().to_str().unwrap().to_owned())
        };
        let zip = b"PK\x05\x06 the beginning is enough";
        let tar = file("ILSVRC2012_img_val.tar", zip);
        let labels = file("val_map.txt", b"a 1\n");
        let offers = open(&[tar.clone(), labels.clone()]).unwrap();
        assert_eq!(of(&offers, 0, false).as_deref(), Some("ILSVRC2012_img_val.tar"));
        assert_eq!(of(&offers, 1, false).as_deref(), Some("val_map.txt"));
        assert_eq!((of(&offers, 2, false), of(&offers, 3, false)), (None, None));
        offers.expect_used(&[resnet, yolo]).unwrap();
        // An archive with another name is only accepted as the data set of the only benchmark.
        let other = open(&[file("imagenet.tar", zip)]).unwrap();
        assert_eq!(of(&other, 0, true).as_deref(), Some("imagenet.tar"));
        other.expect_used(&[resnet]).unwrap();
        let refused = other.expect_used(&[resnet, yolo]).unwrap_err().to_string();
        assert!(
            refused.contains("imagenet.tar is not a file of these benchmarks")
                && refused.contains("ILSVRC2012_img_val.tar"),
            "{refused}"
        );
        // The directory of Whisper's weights is no data set.
        let whisper = catalogue.benchmark("whisper").unwrap();
        let weights = directory.path().join("whisper-large-v3");
        fs::create_dir(&weights).unwrap();
        fs::write(weights.join("config.json"), "{}").unwrap();
        let incomplete = open(slice::from_ref(&weights)).unwrap_err().to_string();
        assert!(
            incomplete.contains("has config.json, but not model.safetensors and tokenizer.json"),
            "{incomplete}"
        );
        for name in ["model.safetensors", "tokenizer.json"] {
            fs::write(weights.join(name), "").unwrap();
        }
        let spellings = file("english.json", b"{}");
        let published = open(&[weights.clone(), spellings]).unwrap();
        published.expect_used(&[whisper, yolo]).unwrap();
        assert_eq!(published.directory(), None);
        let mut downloads = whisper.downloads.iter();
        let model = downloads
            .find(|one| one.purpose == DownloadPurpose::Model)
            .unwrap();
        assert_eq!(published.of(model, whisper, true).unwrap().path, weights);
        // They are those of no other benchmark.
        let sdxl = catalogue.benchmark("stable-diffusion-xl").unwrap();
        assert!(
            sdxl.downloads
                .iter()
                .all(|one| published.of(one, sdxl, false).is_none())
        );
        let refused = published.expect_used(&[resnet]).unwrap_err().to_string();
        assert!(
            refused.contains("whisper-large-v3 is not a file of these"),
            "{refused}"
        );

        let images = open(&[directory.path().to_owned()]).unwrap();
        assert_eq!(images.directory(), Some(directory.path()));
        images.expect_used(&[resnet]).unwrap();
        assert!(images.expect_used(&[resnet, yolo]).is_err());
        assert!(open(&[directory.path().join("missing")]).is_err());
    }
}
