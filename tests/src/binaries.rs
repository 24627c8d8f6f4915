//! Finds the two binaries beside the test executables, where a workspace build puts them.

use std::path::PathBuf;

/// Returns the path of the coordinator's binary.
#[must_use]
pub fn regatta() -> PathBuf {
    binary("regatta")
}

/// Returns the path of the agent's binary.
#[must_use]
pub fn agent() -> PathBuf {
    binary("regatta-agent")
}

/// Builds both binaries in the release profile, for benches.
///
/// # Panics
/// Panics when the build fails.
pub fn build_release_binaries() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = std::process::Command::new(cargo);
    build.args([
        "build",
        "--workspace",
        "--release",
        "--locked",
        "--quiet",
        "--bin",
        "regatta",
        "--bin",
        "regatta-agent",
    ]);
    // With cargo's variables for this package, ring's build script would run again, here and in the next build.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            build.env_remove(&*name);
        }
    }
    let built = build.status().expect("cargo runs");
    assert!(built.success(), "the binaries cannot be built");
}

fn binary(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("a process knows its executable");
    // target/<profile>/campaign, or target/<profile>/deps/<test>-<hash>
    own.ancestors()
        .skip(1)
        .take(2)
        .map(|directory| directory.join(name))
        .find(|path| path.exists())
        .unwrap_or_else(|| {
            panic!(
                "{name} is not beside {}: build the complete workspace first (./test)",
                own.display()
            )
        })
}
