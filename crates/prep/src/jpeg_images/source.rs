//! The images and labels as published, checked before anything is made of them: all images exist, and have the published size in sum.

use std::{
    fs,
    path::{Path, PathBuf},
};

use regatta_types::benchmark::JpegImages;

use super::{
    labels::{self, LabelledImage},
    request::ImageRequest,
};
use crate::error::PrepError;

/// Returns the file of labels in a directory of images: `val_map.txt`, as the reference calls it, or Caffe's `val.txt`.
#[must_use]
pub fn labels_among(images: &Path) -> Option<PathBuf> {
    JpegImages::LABEL_FILES
        .map(|name| images.join(name))
        .into_iter()
        .find(|path| path.is_file())
}

/// A checked dataset.
#[derive(Debug)]
pub(crate) struct ImageSource {
    /// The directory of the images.
    pub(crate) dir: PathBuf,
    /// The images in the order of the labels.
    pub(crate) images: Vec<LabelledImage>,
}

impl ImageSource {
    /// Finds the labels and checks that their images exist.
    pub(crate) fn open(request: &ImageRequest<'_>, kind: &JpegImages) -> Result<Self, PrepError> {
        let dir = request.data.to_owned();
        if !dir.is_dir() {
            let benchmark = request.benchmark.name.clone();
            return Err(PrepError::NoDataset { benchmark, dir });
        }
        let usual = || labels_among(&dir);
        let labels = match request.labels.map(Path::to_owned).or_else(usual) {
            Some(labels) => labels,
            None => return Err(PrepError::NoLabels { dir }),
        };
        let images = labels::read(&labels, request.benchmark.dataset.total_samples, kind.classes)?;
        let mut source = Self { dir, images };
        match request.calibration {
            Some(list) => {
                source.images = labels::select(&source.images, list)?;
                source.check(&labels, None)?;
            }
            None => source.check(&labels, kind.source_bytes)?,
        }
        Ok(source)
    }

    /// Checks that the images exist, and have `source_bytes` bytes together.
    pub(crate) fn check(&self, labels: &Path, source_bytes: Option<u64>) -> Result<(), PrepError> {
        let (mut missing, mut first, mut bytes) = (0, None, 0);
        for image in &self.images {
            match fs::metadata(self.dir.join(&image.name)) {
                Ok(found) if found.is_file() => bytes += found.len(),
                _ => {
                    missing += 1;
                    first.get_or_insert(&image.name);
                }
            }
        }
        if let Some(first) = first {
            return Err(PrepError::MissingImages {
                dir: self.dir.clone(),
                missing,
                total: self.images.len(),
                first: first.clone(),
                labels: labels.to_owned(),
            });
        }
        match source_bytes {
            Some(expected) if bytes != expected => Err(PrepError::SourceBytes {
                dir: self.dir.clone(),
                total: self.images.len(),
                found: bytes,
                expected,
            }),
            _ => Ok(()),
        }
    }
}
