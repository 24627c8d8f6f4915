//! The cases as published, checked before anything is made of them: each has both files. Reads no voxel.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use regatta_datasets::{val_map, volumes::VolumeError};
use regatta_types::benchmark::Volumes;

use crate::{error::PrepError, jpeg_images::ImageRequest};

/// A case with its directory.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) name: String,
    /// The directory of its files.
    pub(crate) directory: PathBuf,
}

/// Finds the cases of a benchmark, or of the calibration list.
pub(crate) fn open(request: &ImageRequest<'_>, kind: &Volumes) -> Result<Vec<Case>, PrepError> {
    let (benchmark, data) = (request.benchmark, request.data);
    if !data.is_dir() {
        return Err(PrepError::NoDataset {
            benchmark: benchmark.name.clone(),
            dir: data.to_owned(),
        });
    }
    let names = match request.calibration {
        Some(list) => listed(list, kind)?,
        None => kind.cases.clone(),
    };
    if request.calibration.is_none() && names.len() != benchmark.dataset.total_samples {
        return Err(PrepError::UnsupportedSettings {
            benchmark: benchmark.name.clone(),
            reason: format!(
                "its file names {} cases, but total_samples is {}",
                names.len(),
                benchmark.dataset.total_samples
            ),
        });
    }
    let total = names.len();
    let has_files = |directory: &Path| {
        let is_needed = request.calibration.is_none();
        directory.join(&kind.image).is_file() && (!is_needed || directory.join(&kind.labels).is_file())
    };
    let (mut cases, mut lacking) = (Vec::new(), Vec::new());
    for name in names {
        // A copy need not be made on disk.
        let published = kind.copies.get(&name).map(|published| data.join(published));
        let directories = [Some(data.join(&name)), published];
        match directories
            .into_iter()
            .flatten()
            .find(|directory| has_files(directory))
        {
            Some(directory) => cases.push(Case { name, directory }),
            None => lacking.push(name),
        }
    }
    match lacking.first() {
        None => Ok(cases),
        Some(first) => Err(VolumeError::MissingCases {
            dir: data.to_owned(),
            missing: lacking.len(),
            total,
            first: first.clone(),
            benchmark: benchmark.name.clone(),
        }
        .into()),
    }
}

/// Reads the cases of a calibration list, none of which may be a sample.
fn listed(list: &Path, kind: &Volumes) -> Result<Vec<String>, PrepError> {
    let names = val_map::names(list).map_err(PrepError::Labels)?;
    let mut seen: HashSet<&String> = kind.cases.iter().collect();
    for name in &names {
        if name.contains('/') || !seen.insert(name) {
            return Err(VolumeError::CalibrationCase {
                path: list.to_owned(),
                name: name.clone(),
            }
            .into());
        }
    }
    Ok(names)
}
