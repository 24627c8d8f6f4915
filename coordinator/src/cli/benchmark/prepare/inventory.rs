//! Finds the existing files of a benchmark: downloads, samples, networks and assets. Changes nothing.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use jiff::Timestamp;
use regatta_datasets::{bundled, label_files::label_files};
use regatta_prep::{ImageRequest, labels_among, raw_data_dir, sample_target};
use regatta_types::{
    benchmark::{Benchmark, Download, DownloadPurpose, FetchKind, Prep},
    documents::Document as _,
    samples::{Form, SampleSet},
};

use super::{
    archive_check,
    needs::Needs,
    offers::{Content, Offers},
    plan::{AssetFact, CalibrationFact, DownloadFact, Facts, NetworkFact, Obstacle, SampleFact, Source},
};
use crate::{
    cli::{
        asset::places,
        data::{ARCHIVES, DownloadPlace, FileState},
        prep::published_scale,
    },
    exit::Failure,
};
use regatta_lab_store::{AssetRow, Store, workspace::Workspace};

/// The size of a `.npy` header in bytes.
const NPY_HEADER: u64 = 128;

/// A benchmark to prepare, with everything that its preparation depends on.
pub(super) struct Subject<'a> {
    pub(super) benchmark: &'a Benchmark,
    pub(super) needs: Needs,
    pub(super) offers: &'a Offers,
    /// Whether it is the only benchmark. Then an archive with any name can be its data set.
    pub(super) is_only: bool,
    pub(super) scratch: PathBuf,
}

impl Subject<'_> {
    /// Returns the directory of the data set that the user named. `None` for the default one.
    pub(super) fn data(&self) -> Option<&Path> {
        self.offers.directory()
    }

    /// Returns the labels if they are not in the same directory as the images.
    pub(super) fn labels(&self) -> Option<PathBuf> {
        let data = self.data()?;
        let is_labelled = matches!(self.benchmark.prep, Some(Prep::JpegImages(_)));
        let elsewhere = || labels_among(&raw_data_dir(self.benchmark, &self.scratch));
        match is_labelled && labels_among(data).is_none() {
            true => elsewhere(),
            false => None,
        }
    }

    /// Collects all facts.
    ///
    /// # Errors
    /// Returns an error when an archive that the user named is not the published one, or when a form is impossible.
    pub(super) fn facts(&self, workspace: &Workspace, store: &Store) -> Result<Facts, Failure> {
        let samples = self.samples()?;
        let calibration = self.calibration()?;
        let network = self.network();
        let downloads = self.downloads()?;
        let assets = match workspace.config().assets_for_devices() {
            Some(_) => self.assets(&samples, calibration.as_ref(), &downloads, &store.assets().all()?)?,
            None => Vec::new(),
        };
        Ok(Facts {
            downloads,
            samples,
            calibration,
            network,
            assets,
        })
    }

    fn downloads(&self) -> Result<Vec<DownloadFact>, Failure> {
        if bundled::contains(self.benchmark) {
            return Ok(Vec::new());
        }
        let downloads = self.benchmark.downloads.iter().enumerate();
        downloads
            .map(|(index, download)| self.download(index, download))
            .collect()
    }

    fn download(&self, index: usize, download: &Download) -> Result<DownloadFact, Failure> {
        let is_there = self.is_there(download);
        let (source, bytes, unpacked_bytes) = match is_there {
            true => (Source::FreeFile, None, None),
            false => self.source(download)?,
        };
        Ok(DownloadFact {
            index,
            title: download.title.clone(),
            purpose: download.purpose,
            path: download.path.clone(),
            is_there,
            source,
            bytes,
            unpacked_bytes,
        })
    }

    /// Returns the source of a missing download, its size in bytes, and the size of its unpacked files.
    fn source(&self, download: &Download) -> Result<(Source, Option<u64>, Option<u64>), Failure> {
        let offer = self.offers.of(download, self.benchmark, self.is_only);
        match (offer.map(|offer| (&offer.content, &offer.path)), &download.fetch) {
            (Some((Content::Archive(archive), path)), _) => {
                let bytes = archive_check::check(archive, download, self.benchmark, &self.scratch)?;
                Ok((Source::OfferedArchive(path.clone()), None, Some(bytes)))
            }
            (Some((Content::File, path)), _) => {
                let bytes = fs::metadata(path).ok().map(|found| found.len());
                Ok((Source::OfferedFile(path.clone()), bytes, None))
            }
            (_, Some(FetchKind::File)) => Ok((Source::FreeFile, download.bytes, None)),
            (_, Some(FetchKind::Archive(_))) => {
                let archive = self.scratch.join(ARCHIVES).join(download.published_name());
                let is_fetched = archive.is_file();
                Ok((Source::FreeArchive { is_fetched }, download.bytes, download.bytes))
            }
            (_, None) => Ok((
                Source::User {
                    hint: user_hint(download, &self.scratch),
                },
                None,
                None,
            )),
        }
    }

    fn is_there(&self, download: &Download) -> bool {
        let images = matches!(self.benchmark.prep, Some(Prep::JpegImages(_)));
        match (self.data(), download.purpose) {
            (Some(_), DownloadPurpose::Dataset) => return true,
            (Some(data), DownloadPurpose::Labels) if images && labels_among(data).is_some() => return true,
            _ => {}
        }
        let place = DownloadPlace::find(download, self.benchmark, &self.scratch);
        let is_unlabelled = images
            && download.purpose == DownloadPurpose::Dataset
            && place.path.is_dir()
            && labels_among(&place.path).is_none();
        if is_unlabelled {
            // Names are compared once there are labels.
            return fs::read_dir(&place.path).is_ok_and(|files| files.count() >= download.files);
        }
        place.state == FileState::Present
    }

    fn samples(&self) -> Result<Vec<SampleFact>, Failure> {
        let forms = self.needs.forms.iter();
        forms
            .map(|&form| {
                let formed = self.benchmark.in_form(form).map_err(Failure::usage)?;
                Ok(SampleFact {
                    form,
                    is_made: self.is_made(&formed),
                    bytes: sample_bytes(&formed, formed.dataset.total_samples),
                    obstacle: self.form_obstacle(form),
                    directory: formed.dataset.dir,
                })
            })
            .collect()
    }

    /// Returns whether a set of samples is complete, including the other files that a run and its accuracy need.
    fn is_made(&self, formed: &Benchmark) -> bool {
        let is_file = |path: &Path| path.as_os_str().is_empty() || self.scratch.join(path).is_file();
        let has_files = is_file(Path::new(&formed.dataset.map))
            && label_files(self.benchmark).iter().all(|path| is_file(path));
        let directory = self.scratch.join(&formed.dataset.dir);
        match &formed.prep {
            Some(Prep::Published { .. }) => has_files,
            _ => {
                has_files
                    && is_complete(&directory, |set| {
                        set.samples == formed.dataset.total_samples && set.check(&formed.model).is_ok()
                    })
            }
        }
    }

    fn form_obstacle(&self, form: Form) -> Option<Obstacle> {
        let name = &self.benchmark.name;
        if self.benchmark.prep.is_none() {
            return Some(Obstacle {
                what: format!("samples of {name}"),
                hint: "the benchmark's file has no [prep]: put the samples there yourself".to_owned(),
            });
        }
        let is_int8 = form.dtype == regatta_types::benchmark::Dtype::Int8;
        if !is_int8 || published_scale(self.benchmark, form).is_some() {
            return None;
        }
        let (dtype, layout) = (form.dtype.word(), form.layout);
        Some(Obstacle {
            what: format!("samples of {name} as {form}, whose scale is not published"),
            hint: format!(
                "calibrate first (`regatta engine calibrate --help`), then `regatta prep {name} --dtype {dtype} --layout {layout} --calibration-cache FILE`"
            ),
        })
    }

    /// Returns the calibration samples of int8 engines, for the kinds of data whose lists `prep` can read.
    fn calibration(&self) -> Result<Option<CalibrationFact>, Failure> {
        let lists = self.benchmark.downloads.iter().enumerate();
        let mut lists = lists.filter(|(_, download)| download.purpose == DownloadPurpose::Calibration);
        let Some((index, list)) = lists.next().filter(|_| self.needs.has_int8) else {
            return Ok(None);
        };
        let images = match &self.benchmark.prep {
            Some(Prep::JpegImages(_) | Prep::Volumes(_)) => None,
            Some(Prep::DetectionImages(kind)) => Some(kind.calibration_images.as_str()),
            Some(Prep::LetterboxImages(kind)) => Some(kind.calibration_images.as_str()),
            _ => return Ok(None),
        };
        let usual = raw_data_dir(self.benchmark, &self.scratch);
        let data = self.data().unwrap_or(&usual);
        let missing = images
            .map(|images| data.join(images))
            .filter(|images| !images.is_dir());
        let path = self.scratch.join(&list.path);
        let request = ImageRequest {
            benchmark: self.benchmark,
            form: self.benchmark.form(),
            quantised: None,
            data,
            labels: None,
            calibration: Some(&path),
            accepts_damaged: false,
        };
        let target = sample_target(&request)?;
        Ok(Some(CalibrationFact {
            list: index,
            is_made: is_complete(&self.scratch.join(&target.dataset.dir), |_| true),
            bytes: lines(&path).and_then(|lines| sample_bytes(&target, lines)),
            directory: target.dataset.dir,
            obstacle: missing.map(|missing| Obstacle {
                what: format!(
                    "the calibration images of {} in {}",
                    self.benchmark.name,
                    missing.display()
                ),
                hint: list.title.clone(),
            }),
        }))
    }

    fn network(&self) -> NetworkFact {
        let model = &self.benchmark.model;
        let mut missing = model.files();
        missing.retain(|path| !self.scratch.join(path).is_file());
        if bundled::contains(self.benchmark) {
            missing.clear();
        }
        NetworkFact {
            missing,
            is_exported: model.transducer.is_some() || model.encoder_decoder.is_some(),
        }
    }

    fn assets(
        &self,
        samples: &[SampleFact],
        calibration: Option<&CalibrationFact>,
        downloads: &[DownloadFact],
        rows: &[AssetRow],
    ) -> Result<Vec<AssetFact>, Failure> {
        let mut paths: Vec<String> = Vec::new();
        for set in samples {
            paths.extend(places(&self.benchmark.in_form(set.form).map_err(Failure::usage)?));
        }
        paths.extend(calibration.map(|set| set.directory.clone()));
        paths.sort();
        paths.dedup();
        let predicted = |path: &str| {
            let sets = samples.iter().map(|set| (&set.directory, set.bytes));
            let sets = sets.chain(calibration.map(|set| (&set.directory, set.bytes)));
            let files = downloads.iter().map(|download| (&download.path, download.bytes));
            let mut known = sets.chain(files);
            known
                .find(|(known, _)| known.as_str() == path)
                .and_then(|(_, bytes)| bytes)
        };
        Ok(paths
            .into_iter()
            .map(|path| {
                let found = Tree::of(&self.scratch.join(&path));
                let row = rows.iter().find(|row| row.asset.path == path);
                AssetFact {
                    bytes: found
                        .as_ref()
                        .map(|found| found.bytes)
                        .or_else(|| predicted(&path)),
                    is_current: found.zip(row).is_some_and(|(found, row)| found.is_in(row)),
                    path,
                }
            })
            .collect())
    }
}

/// The files at a path, counted in the same way as by the asset store.
struct Tree {
    files: u64,
    bytes: u64,
    changed: SystemTime,
}

impl Tree {
    /// Counts the files of a file or directory. Returns `None` when it is missing or cannot be read.
    fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        let mut tree = Self {
            files: 0,
            bytes: 0,
            changed: SystemTime::UNIX_EPOCH,
        };
        if found.is_dir() {
            tree.add_directory(path).ok()?;
        } else {
            tree.add(&found).ok()?;
        }
        Some(tree)
    }

    fn add_directory(&mut self, directory: &Path) -> io::Result<()> {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            let found = fs::metadata(&path)?;
            match found.is_dir() {
                true => self.add_directory(&path)?,
                false => self.add(&found)?,
            }
        }
        Ok(())
    }

    fn add(&mut self, found: &fs::Metadata) -> io::Result<()> {
        self.files += 1;
        self.bytes += found.len();
        self.changed = self.changed.max(found.modified()?);
        Ok(())
    }

    /// Returns whether an asset has the same number of files and bytes, and no file has changed since it was added.
    fn is_in(&self, row: &AssetRow) -> bool {
        let added: Option<Timestamp> = row.added.parse().ok();
        let changed = Timestamp::try_from(self.changed).ok();
        (row.files, row.asset.bytes) == (self.files, self.bytes)
            && added
                .zip(changed)
                .is_some_and(|(added, changed)| changed.as_second() <= added.as_second())
    }
}

/// Returns whether the samples in a directory are complete, and their document satisfies `is_expected`.
fn is_complete(directory: &Path, is_expected: impl Fn(&SampleSet) -> bool) -> bool {
    let document = fs::read(directory.join(SampleSet::FILE)).ok();
    let set = document.and_then(|bytes| SampleSet::from_json(&bytes).ok());
    SampleSet::check_whole(directory).is_ok() && set.is_some_and(|set| is_expected(&set))
}

/// Predicts the size of a set of samples in bytes. Returns `None` if the samples differ in size.
fn sample_bytes(formed: &Benchmark, samples: usize) -> Option<u64> {
    if formed.model.windows.is_some() {
        return None;
    }
    let sample = u64::try_from(formed.model.sample_bytes()?).ok()?;
    u64::try_from(samples)
        .ok()?
        .checked_mul(sample.checked_add(NPY_HEADER)?)
}

fn lines(path: &Path) -> Option<usize> {
    Some(fs::read_to_string(path).ok()?.lines().count())
}

/// Describes how the user can get a download.
fn user_hint(download: &Download, scratch: &Path) -> String {
    let terms = download
        .terms
        .as_ref()
        .map_or_else(String::new, |terms| format!(" ({terms})"));
    let is_archive = download
        .checksums
        .iter()
        .any(|checksum| checksum.contains(".tar"));
    let then = match is_archive {
        true => "then the same command with --from ARCHIVE".to_owned(),
        false => format!("then put it at {}", scratch.join(&download.path).display()),
    };
    format!("get it from {}{terms}; {then}", download.url)
}
