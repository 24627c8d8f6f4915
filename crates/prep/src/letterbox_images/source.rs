//! The images and annotations as published, checked before anything is made of them. Decodes no image.

use std::path::{Path, PathBuf};

use regatta_datasets::annotations::{AnnotationError, Annotations, read_annotations};
use regatta_types::benchmark::LetterboxImages;

use super::selection::selected;
use crate::{
    detection_images::{annotated_images, calibration_images, checked},
    error::PrepError,
    jpeg_images::{ImageRequest, ImageSource},
};

/// Finds the annotations, or the calibration list, and checks that the selected images exist. Returns the images, and the file of
/// annotations unless they are of a list.
pub(crate) fn open(
    request: &ImageRequest<'_>,
    kind: &LetterboxImages,
) -> Result<(ImageSource, Option<PathBuf>), PrepError> {
    let data = request.data;
    if let Some(images) = calibration_images(request, kind.calibration_images.as_ref())? {
        return Ok((images, None));
    }
    let path = request
        .labels
        .map_or_else(|| data.join(&kind.annotations), Path::to_owned);
    let json = read_annotations(&path)?;
    let mut annotations = Annotations::parse(&path, &json)?;
    let selected = selected(&json, &kind.licences).map_err(|source| AnnotationError::Form {
        path: path.clone(),
        source,
    })?;
    let (total, expected) = (annotations.images.len(), request.benchmark.dataset.total_samples);
    annotations.images.retain(|image| selected.contains(&image.id));
    let found = annotations.images.len();
    if found != expected {
        return Err(PrepError::SelectedImages {
            path,
            found,
            total,
            expected,
        });
    }
    let images = annotated_images(&path, annotations, expected)?;
    let directories = kind.images.iter().map(|name| data.join(name));
    let found = directories.clone().find(|directory| directory.is_dir());
    let directory = found.or_else(|| directories.clone().next()).unwrap_or_default();
    Ok((checked(&path, directory, images)?, Some(path)))
}
