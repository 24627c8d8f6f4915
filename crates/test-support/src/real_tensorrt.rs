//! The directory into which `crates/tensorrt/shim/for-tests.sh` installs NVIDIA's libraries and the shims for them.

use std::{env, path::PathBuf};

use regatta_test_requirements::{Requirement, skip};

/// Returns the directory if it contains `file`. Otherwise records a skipped test.
pub fn root_with(file: &str) -> Option<PathBuf> {
    let root = env::var_os("REGATTA_TENSORRT_TESTS").map(PathBuf::from);
    let found = root.filter(|root| root.join(file).exists());
    if found.is_none() {
        let reason =
            format!("REGATTA_TENSORRT_TESTS has no {file}; crates/tensorrt/shim/for-tests.sh installs it");
        skip(Requirement::Package, reason);
    }
    found
}
