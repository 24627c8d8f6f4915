//! Reads an image from its file. Errors name the file.

use std::path::Path;

use regatta_fsutil::regular_file;
use regatta_jpeg::Image;

use crate::error::PrepError;

/// The largest file that is read as an image.
const MAX_IMAGE: u64 = 1 << 30;

/// Reads and decodes a JPEG.
pub(crate) fn read_image(path: &Path) -> Result<Image, PrepError> {
    let jpeg = regular_file::read(path, MAX_IMAGE).map_err(|source| PrepError::Open {
        path: path.to_owned(),
        source,
    })?;
    regatta_jpeg::decode(&jpeg).map_err(|source| PrepError::Image {
        path: path.to_owned(),
        source,
    })
}
