//! Reads an image from its file, as far as the reference does. Errors name the file.

use std::path::Path;

use regatta_fsutil::regular_file;
use regatta_jpeg::{Damage, Decoded};

use crate::{damaged_images::ImageFault, error::PrepError, image_formats};

/// The largest file that is read as an image.
const MAX_IMAGE: u64 = 1 << 30;

/// The function of OpenCV with which a reference reads images. They differ for images that end early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenCvReader {
    /// `imread` fills pixels that are missing, and does not need an end marker.
    Imread,
    /// `imdecode` refuses an image that ends early.
    Imdecode,
}

/// Reads and decodes an image. What is left of its damage changes pixels.
pub(crate) fn read_image(path: &Path, reader: OpenCvReader) -> Result<Decoded, PrepError> {
    let bytes = regular_file::read(path, MAX_IMAGE).map_err(|source| PrepError::Open {
        path: path.to_owned(),
        source,
    })?;
    let unusable = |source| PrepError::Image {
        path: path.to_owned(),
        source,
    };
    if let Some(decoded) = image_formats::decode(&bytes) {
        let image = decoded.map_err(|error| unusable(ImageFault::Unreadable(error)))?;
        return Ok(Decoded { image, damage: None });
    }
    let mut decoded =
        regatta_jpeg::decode(&bytes).map_err(|error| unusable(ImageFault::Undecodable(error)))?;
    match decoded.damage.take() {
        Some(damage) if reader == OpenCvReader::Imdecode && damage.ends_early() => {
            return Err(unusable(ImageFault::RefusedByReference(damage)));
        }
        Some(Damage::NoEndMarker) | None => {}
        damage => decoded.damage = damage,
    }
    Ok(decoded)
}
