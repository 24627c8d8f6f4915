//! The directory into which `crates/tensorrt/shim/for-tests.sh` installs NVIDIA's libraries and the shims for them.

use std::{env, path::PathBuf};

/// Returns the directory if it contains `file`. Otherwise returns `None`, after printing the reason; under CI it fails.
pub fn root_with(file: &str) -> Option<PathBuf> {
    let root = env::var_os("REGATTA_TENSORRT_TESTS").map(PathBuf::from);
    let found = root.filter(|root| root.join(file).exists());
    if found.is_none() {
        assert!(
            env::var_os("CI").is_none_or(|value| value != "true"),
            "CI leaves nothing out: REGATTA_TENSORRT_TESTS has no {file}; see crates/tensorrt/shim/for-tests.sh"
        );
        println!(
            "left out: no {file} in REGATTA_TENSORRT_TESTS; crates/tensorrt/shim/for-tests.sh brings it"
        );
    }
    found
}
