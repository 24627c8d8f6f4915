//! Where the two binaries lie: beside the test executables, as a workspace build puts them there.

use std::path::{Path, PathBuf};

/// The coordinator's binary.
#[must_use]
pub fn regatta() -> PathBuf {
    binary("regatta")
}

/// The agent's binary.
#[must_use]
pub fn agent() -> PathBuf {
    binary("regatta-agent")
}

fn binary(name: &str) -> PathBuf {
    // target/<profile>/deps/<test>-<hash>
    let test = std::env::current_exe().expect("a process knows its executable");
    let path = test
        .parent()
        .and_then(Path::parent)
        .expect("tests lie in deps/")
        .join(name);
    assert!(
        path.exists(),
        "{} is missing: run the tests of the whole workspace (./test)",
        path.display()
    );
    path
}
