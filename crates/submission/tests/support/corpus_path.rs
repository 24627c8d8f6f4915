//! The corpus of published results, where it lies beside the project.

use std::path::{Path, PathBuf};

/// A part of the corpus of published results; `None`, said on the error output, where it is not beside the project.
pub(crate) fn corpus(part: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/corpus")
        .join(part);
    if path.is_dir() {
        return Some(path);
    }
    eprintln!("skipped: no corpus at {}", path.display());
    None
}
