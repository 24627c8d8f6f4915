//! The images and annotations as published, checked before anything is made of them: the names are plain, and all images exist.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use regatta_types::{assets::is_inner_path, benchmark::DetectionImages};

use super::annotations::{AnnotatedImage, Annotations};
use crate::{
    error::PrepError,
    jpeg_images::{ImageRequest, ImageSource, LabelledImage},
    val_map,
};

/// Finds the annotations, or the calibration list, and checks that their images exist. Returns the images, and the file of annotations
/// unless they are of a list.
pub(crate) fn open(
    request: &ImageRequest<'_>,
    kind: &DetectionImages,
) -> Result<(ImageSource, Option<PathBuf>), PrepError> {
    let data = request.data;
    if !data.is_dir() {
        return Err(PrepError::NoDataset {
            benchmark: request.benchmark.name.clone(),
            dir: data.to_owned(),
        });
    }
    let (path, dir, images) = match request.calibration {
        Some(list) => (list.to_owned(), &kind.calibration_images, listed(list)?),
        None => {
            let usual = || data.join(&kind.annotations);
            let path = request.labels.map_or_else(usual, Path::to_owned);
            let images = annotated(&path, request.benchmark.dataset.total_samples)?;
            (path, &kind.images, images)
        }
    };
    let mut seen = HashSet::new();
    for LabelledImage { name, .. } in &images {
        // A map separates its columns by spaces.
        let is_plain = is_inner_path(name) && !name.contains(char::is_whitespace);
        if !is_plain || !seen.insert(name) {
            let name = name.clone();
            return Err(PrepError::ImageName { path, name });
        }
    }
    let source = ImageSource {
        dir: data.join(dir),
        images,
    };
    source.check(&path, None)?;
    Ok((source, request.calibration.is_none().then_some(path)))
}

/// Reads the names in a calibration list.
fn listed(list: &Path) -> Result<Vec<LabelledImage>, PrepError> {
    let names = val_map::names(list).map_err(PrepError::Labels)?;
    Ok(names
        .into_iter()
        .map(|name| LabelledImage { name, label: 0 })
        .collect())
}

/// Reads the `expected` images in annotations. Their labels are their identifiers.
fn annotated(path: &Path, expected: usize) -> Result<Vec<LabelledImage>, PrepError> {
    let images = Annotations::read(path)?.images;
    if images.len() != expected {
        return Err(PrepError::SampleCount {
            path: path.to_owned(),
            expected,
            found: images.len(),
        });
    }
    let image = |image: AnnotatedImage| LabelledImage {
        name: image.file_name,
        label: image.id,
    };
    Ok(images.into_iter().map(image).collect())
}
