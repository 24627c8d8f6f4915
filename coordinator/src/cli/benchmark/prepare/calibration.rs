//! The scales of int8 engines: the samples of the published calibration list, or the reason why an engine would have none.

use std::path::Path;

use regatta_datasets::val_map;
use regatta_lab_runs::{SCALES_HINT, has_no_scales};
use regatta_prep::{ImageRequest, raw_data_dir, sample_target};
use regatta_types::benchmark::{Benchmark, Download, DownloadPurpose, Prep};

use super::{
    inventory::Subject,
    plan::{CalibrationFact, Obstacle},
    sample_files::{is_complete, present_bytes, sample_bytes},
};
use crate::exit::Failure;

impl Subject<'_> {
    /// Returns the calibration samples of int8 engines, for the kinds of data whose lists `prep` can read.
    pub(super) fn calibration(&self) -> Result<Option<CalibrationFact>, Failure> {
        let Some((index, list)) = self.calibration_list().filter(|_| self.needs.needs_scales) else {
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
        let listed = val_map::names(&path).ok();
        let directory = self.scratch.join(&target.dataset.dir);
        Ok(Some(CalibrationFact {
            list: index,
            is_made: is_list_made(&target, listed.as_deref(), &self.scratch),
            bytes: listed
                .map(|names| names.len())
                .or(list.samples)
                .and_then(|samples| sample_bytes(&target, samples)),
            present_bytes: present_bytes(&directory),
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

    /// Returns the reason why int8 engines would have no scales: `prep` cannot read the calibration list, nobody has prepared its samples, and the
    /// network is not known to have scales.
    pub(super) fn no_scales(&self, calibration: Option<&CalibrationFact>) -> Option<Obstacle> {
        let model = &self.benchmark.model;
        let is_known = |network: &String| {
            let path = self.scratch.join(network);
            path.is_file() && !has_no_scales(&path)
        };
        let prepared = self.benchmark.calibration_dirs();
        if !self.needs.needs_scales
            || calibration.is_some()
            || prepared
                .iter()
                .any(|directory| self.scratch.join(directory).is_dir())
            || model.networks().iter().all(is_known)
        {
            return None;
        }
        let list = match self.calibration_list() {
            Some((_, list)) => format!("`regatta prep` cannot read its calibration list {}", list.path),
            None => "it has no published calibration list".to_owned(),
        };
        Some(Obstacle {
            what: format!("scales for int8 engines of {}: {list}", self.benchmark.name),
            hint: format!(
                "put a network with scales at {}, or request runs with other settings: {SCALES_HINT}",
                self.scratch.join(&model.file).display()
            ),
        })
    }

    /// Returns the first published calibration list, with its index among the downloads.
    fn calibration_list(&self) -> Option<(usize, &Download)> {
        let mut lists = self.benchmark.downloads.iter().enumerate();
        lists.find(|(_, download)| download.purpose == DownloadPurpose::Calibration)
    }
}

/// Returns whether the samples of a calibration list are complete. They are compared with the list by name, unless the list is not there any more.
fn is_list_made(target: &Benchmark, listed: Option<&[String]>, scratch: &Path) -> bool {
    let Ok(samples) = val_map::names(&scratch.join(&target.dataset.map)) else {
        return false;
    };
    let directory = scratch.join(&target.dataset.dir);
    if !is_complete(&directory, target, |set| set.samples == samples.len()) {
        return false;
    }
    // The windows of a volume are samples: `NAME_0`, `NAME_1` and so on.
    let volume = |name: &'_ str| name.rsplit_once('_').map(|(volume, _)| volume.to_owned());
    let mut volumes: Vec<_> = samples.iter().filter_map(|name| volume(name)).collect();
    volumes.dedup();
    listed.is_none_or(|listed| samples == listed || (target.model.windows.is_some() && volumes == listed))
}
