//! Checks the hash of the model file against the benchmark's description. This module does not parse models.

use std::io;

use regatta_fsutil::hash::sha256_of_file;

use super::{EngineError, LoadRequest};

/// Returns the file's SHA-256, hexadecimal. If the benchmark states a hash, the file's must be equal.
///
/// # Errors
/// [`EngineError`] when the file cannot be read or its hash differs.
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
