//! The images and annotations as published, checked before anything is made of them: the names are plain, and all images exist.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use regatta_datasets::{
    annotations::{AnnotatedImage, Annotations},
    val_map,
};
use regatta_types::{assets::is_inner_path, benchmark::DetectionImages};

use crate::{
    error::PrepError,
    jpeg_images::{ImageRequest, ImageSource, LabelledImage},
};

/// Finds the annotations, or the calibration list, and checks that their images exist. Returns the images, and the file of annotations
/// unless they are of a list.
pub(crate) fn open(
    request: &ImageRequest<'_>,
    kind: &DetectionImages,
) -> Result<(ImageSource, Option<PathBuf>), PrepError> {
    let data = request.data;
    if let Some(images) = calibration_images(request, kind.calibration_images.as_ref())? {
        return Ok((images, None));
    }
    let path = request
        .labels
        .map_or_else(|| data.join(&kind.annotations), Path::to_owned);
    let annotations = Annotations::read(&path)?;
    let images = annotated_images(&path, annotations, request.benchmark.dataset.total_samples)?;
    Ok((checked(&path, data.join(&kind.images), images)?, Some(path)))
}

/// Returns the images of the calibration list, if one is requested. An error without the dataset.
pub(crate) fn calibration_images(
    request: &ImageRequest<'_>,
    directory: &Path,
) -> Result<Option<ImageSource>, PrepError> {
    if !request.data.is_dir() {
        return Err(PrepError::NoDataset {
            benchmark: request.benchmark.name.clone(),
            dir: request.data.to_owned(),
        });
    }
    let Some(list) = request.calibration else {
        return Ok(None);
    };
    let images = listed(list)?;
    checked(list, request.data.join(directory), images).map(Some)
}

/// Checks that the names of images are plain and occur once, and that the images exist. `path` is the file that names them.
pub(crate) fn checked(
    path: &Path,
    dir: PathBuf,
    images: Vec<LabelledImage>,
) -> Result<ImageSource, PrepError> {
    let mut seen = HashSet::new();
    for LabelledImage { name, .. } in &images {
        // A map separates its columns by spaces.
        let is_plain = is_inner_path(name) && !name.contains(char::is_whitespace);
        if !is_plain || !seen.insert(name) {
            return Err(PrepError::ImageName {
                path: path.to_owned(),
                name: name.clone(),
            });
        }
    }
    let source = ImageSource { dir, images };
    source.check(path, None)?;
    Ok(source)
}

/// Reads the names in a calibration list.
pub(crate) fn listed(list: &Path) -> Result<Vec<LabelledImage>, PrepError> {
    let names = val_map::names(list).map_err(PrepError::Labels)?;
    Ok(names
        .into_iter()
        .map(|name| LabelledImage { name, label: 0 })
        .collect())
}

/// Returns the `expected` images of annotations. Their labels are their identifiers.
pub(crate) fn annotated_images(
    path: &Path,
    annotations: Annotations,
    expected: usize,
) -> Result<Vec<LabelledImage>, PrepError> {
    let images = annotations.images;
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
