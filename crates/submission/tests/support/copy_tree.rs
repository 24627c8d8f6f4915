//! Copies a directory tree in tests.

use std::path::Path;

use crate::tree::{files, put};

/// Copies a tree's files.
pub(crate) fn copy(from: &Path, to: &Path) {
    for (path, content) in files(from) {
        put(&to.join(path), content);
    }
}
