//! The model's file, held against the hash in the benchmark's description. Reads no model.

use std::io;

use regatta_fsutil::hash::sha256_of_file;

use super::{EngineError, LoadRequest};

/// The file's SHA-256, hexadecimal, which is the benchmark's where that names one.
///
/// # Errors
/// [`EngineError`] when the file cannot be read, or is another one.
pub(super) fn checked_hash(request: &LoadRequest<'_>) -> Result<String, EngineError> {
    let file = &request.model_file;
    let unreadable = |source: io::Error| EngineError::ModelUnreadable {
        file: file.clone(),
        source,
    };
    let found = sha256_of_file(file).map_err(unreadable)?.hex();
    match &request.benchmark.model.sha256 {
        Some(expected) if !found.eq_ignore_ascii_case(expected) => Err(EngineError::ModelDiffers {
            file: file.clone(),
            found,
            expected: expected.clone(),
        }),
        _ => Ok(found),
    }
}
