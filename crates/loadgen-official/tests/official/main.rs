//! Tests of the MLCommons LoadGen through a plug-in, which they build from its PyPI source package.
//!
//! Where it cannot be built (no compiler, no network) they are skipped.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may say what it expects")]

mod faults;
mod loading;
mod runs;
mod settings;

use std::fs;

use regatta_loadgen_official::Plugin;
use regatta_test_support::official_loadgen;

/// Returns a plug-in with its own LoadGen state: a copy of the file, which the loader takes for another library. LoadGen's state
/// is global, and unusable after an abandoned run.
pub(crate) fn fresh_plugin(version: &str) -> Option<Plugin> {
    let file = official_loadgen::plugin_file(version)?;
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join(file.file_name().unwrap());
    fs::copy(&file, &copy).unwrap();
    Some(Plugin::open(&copy).unwrap())
}
