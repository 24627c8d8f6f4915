//! The corpus of published submissions, where the machine has it.

use std::path::{Path, PathBuf};

use regatta_rules::{known, round::Round};

/// A directory of the corpus; prints why there is none and gives `None`.
pub(crate) fn directory(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/corpus")
        .join(name);
    if path.is_dir() {
        return Some(path);
    }
    println!("skipped: {} is not there", path.display());
    None
}

/// A round by its name.
pub(crate) fn round(name: &str) -> Round {
    known::rounds()
        .unwrap()
        .into_iter()
        .find(|round| round.name == name)
        .unwrap()
}
