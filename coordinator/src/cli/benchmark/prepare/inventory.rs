//! Finds the existing files of a benchmark: downloads, samples, networks and assets. Changes nothing.

use std::{
    fs,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use regatta_datasets::{bundled, label_files::label_files};
use regatta_prep::{labels_among, raw_data_dir};
use regatta_types::{
    benchmark::{Benchmark, Download, DownloadPurpose, FetchKind, Prep},
    samples::{Form, SampleSet},
};

use super::{
    archive_check::{self, UnpackedSize, unpacked_bytes},
    exporter,
    needs::Needs,
    offers::{Content, Offers},
    plan::{AssetFact, CalibrationFact, DownloadFact, Facts, NetworkFact, Obstacle, SampleFact, Source},
    sample_files::{is_complete, present_bytes, sample_bytes},
};
use crate::{
    cli::{
        asset::places,
        data::{ARCHIVES, DownloadPlace, FileState, PART, count_files},
        prep::published_quantisation,
    },
    exit::Failure,
};
use regatta_lab_net::assets::SourceTree;
use regatta_lab_store::{AssetRow, Store, workspace::Workspace};

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
        let no_scales = self.no_scales(calibration.as_ref());
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
            no_scales,
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
        let (source, bytes, unpacked) = match is_there {
            true => (Source::FreeFile, None, None),
            false => self.source(download)?,
        };
        let part = match &source {
            Source::FreeFile => Some(self.scratch.join(&download.path)),
            Source::FreeArchive { .. } => Some(self.archive_path(download)),
            _ => None,
        };
        let part = part.map(|path| present_bytes(&path.with_added_extension(PART)));
        Ok(DownloadFact {
            index,
            title: download.title.clone(),
            purpose: download.purpose,
            path: download.path.clone(),
            is_there,
            source,
            bytes,
            fetched_bytes: part.unwrap_or(0),
            unpacked_bytes: unpacked.map(|size| size.bytes),
            present_bytes: unpacked.map_or(0, |size| size.present),
        })
    }

    /// Returns the path of a downloaded archive.
    fn archive_path(&self, download: &Download) -> PathBuf {
        self.scratch.join(ARCHIVES).join(download.published_name())
    }

    /// Returns the source of a missing download, its size in bytes, and the size of its unpacked files.
    fn source(&self, download: &Download) -> Result<(Source, Option<u64>, Option<UnpackedSize>), Failure> {
        let offer = self.offers.of(download, self.benchmark, self.is_only);
        match (offer.map(|offer| (&offer.content, offer)), &download.fetch) {
            (Some((Content::Archive(archive), offer)), _) if !offer.is_the_file(download) => {
                let size = archive_check::check(archive, download, self.benchmark, &self.scratch)?;
                Ok((Source::OfferedArchive(offer.path.clone()), None, Some(size)))
            }
            (Some((Content::Archive(_) | Content::File, offer)), _) => {
                let bytes = fs::metadata(&offer.path).ok().map(|found| found.len());
                Ok((Source::OfferedFile(offer.path.clone()), bytes, None))
            }
            (Some((Content::Checkpoint(names), offer)), _) => {
                let files = names.iter().map(|name| fs::metadata(offer.path.join(name)));
                let bytes = files.map(|found| found.ok().map(|found| found.len())).sum();
                Ok((Source::OfferedFile(offer.path.clone()), bytes, None))
            }
            (_, Some(FetchKind::File)) => Ok((Source::FreeFile, download.bytes, None)),
            (_, Some(FetchKind::Archive(_))) => {
                let is_fetched = self.archive_path(download).is_file();
                let unpacked = download.bytes.map(|bytes| UnpackedSize {
                    bytes,
                    present: unpacked_bytes(download, &self.scratch),
                });
                Ok((Source::FreeArchive { is_fetched }, download.bytes, unpacked))
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
            return count_files(&place.path).is_ok_and(|count| count >= download.files);
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
                    present_bytes: present_bytes(&self.scratch.join(&formed.dataset.dir)),
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
            // These have no samples.
            Some(Prep::Published { files })
                if files
                    .iter()
                    .all(|file| file.prompts.is_none() && file.captions.is_none()) =>
            {
                has_files
            }
            _ => {
                let scale = published_quantisation(formed, formed.form()).map(|quantised| quantised.scale);
                // Samples of another scale have the same type and size.
                let has_scale = |set: &SampleSet| {
                    let own = set.quantised.as_ref().map(|quantised| quantised.scale);
                    scale.is_none_or(|scale| own.map(f32::to_bits) == Some(scale.to_bits()))
                };
                has_files
                    && is_complete(&directory, formed, |set| {
                        set.samples == formed.dataset.total_samples && has_scale(set)
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
        if !is_int8 || published_quantisation(self.benchmark, form).is_some() {
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

    fn network(&self) -> NetworkFact {
        let model = &self.benchmark.model;
        let files = model.files();
        let mut missing = files.clone();
        missing.retain(|path| !self.scratch.join(path).is_file());
        if bundled::contains(self.benchmark) {
            missing.clear();
        }
        NetworkFact {
            files,
            missing,
            is_exported: exporter::exports(model),
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
        let unfinished = samples.iter().filter(|set| !set.is_made);
        let unfinished = unfinished.map(|set| &set.directory);
        let calibration = calibration.filter(|set| !set.is_made);
        let unfinished: Vec<&String> = unfinished.chain(calibration.map(|set| &set.directory)).collect();
        Ok(paths
            .into_iter()
            .map(|path| {
                let found = SourceTree::read(&self.scratch.join(&path)).ok();
                let row = rows.iter().find(|row| row.asset.path == path);
                let found_bytes = found.as_ref().map(SourceTree::bytes);
                AssetFact {
                    bytes: match unfinished.contains(&&path) {
                        true => predicted(&path).or(found_bytes),
                        false => found_bytes.or_else(|| predicted(&path)),
                    },
                    is_current: found.zip(row).is_some_and(|(found, row)| is_current(&found, row)),
                    path,
                }
            })
            .collect())
    }
}

/// Returns whether an asset has the same number of files and bytes, and no file has changed since it was added.
fn is_current(found: &SourceTree, row: &AssetRow) -> bool {
    let added: Option<Timestamp> = row.added.parse().ok();
    let changed = found
        .modified()
        .map_or(Ok(Timestamp::UNIX_EPOCH), Timestamp::try_from)
        .ok();
    (row.files, row.asset.bytes) == (found.files(), found.bytes())
        && added
            .zip(changed)
            .is_some_and(|(added, changed)| changed <= added)
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
        false if !download.checkpoint.is_empty() => "then the same command with --from DIRECTORY".to_owned(),
        false => format!("then put it at {}", scratch.join(&download.path).display()),
    };
    format!("get it from {}{terms}; {then}", download.url)
}
