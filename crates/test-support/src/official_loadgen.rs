//! The official LoadGen as a plug-in, built on demand from its PyPI source package or from a checkout, for tests of any package.

use std::{
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use regatta_test_requirements::{Requirement, official_tools, skip};

/// Returns the plug-in of a version on PyPI. It is built once into `REGATTA_ORACLES` (default: beside cargo's own output). Records
/// a skipped test when it cannot be built. A board needs no compiler: with
/// `REGATTA_LOADGENS` set, the compiled plug-in is in that directory (cross/test-archive.sh).
pub fn plugin_file(version: &str) -> Option<PathBuf> {
    plugin_of_package(version, version)
}

/// Returns the plug-in of a package on PyPI whose LoadGen reports another version than the package, as [`plugin_file`] does.
pub fn plugin_of_package(package: &str, version: &str) -> Option<PathBuf> {
    let name = format!("libregatta_loadgen-{version}-NA.so");
    if let Some(made) = env::var_os("REGATTA_LOADGENS") {
        let made = Path::new(&made).join(name);
        assert!(made.exists(), "{} is missing", made.display());
        return Some(made);
    }
    match build(version, &["--pypi", package].map(OsStr::new)) {
        Ok(file) => Some(file),
        Err(reason) => {
            skip(
                Requirement::Package,
                format!("no official LoadGen {version}: {reason}"),
            );
            None
        }
    }
}

/// Returns the plug-in of a tag that is not on PyPI, from the official tools (`tests/oracles/inference/checkouts.sh`), built as
/// [`plugin_file`] does. No package registry has them, so CI may lack them. Records a skipped test without them.
///
/// # Panics
/// Panics when the plug-in cannot be built.
pub fn plugin_of_tag(tag: &str) -> Option<PathBuf> {
    let loadgen = official_tools(Path::new(tag).join("loadgen"))?;
    let checkout = loadgen.parent()?;
    let version = tag.trim_start_matches('v');
    Some(build(version, &["--source".as_ref(), checkout.as_os_str()]).unwrap())
}

/// Builds the plug-in of a version from the sources that `origin` names to `build.sh`, unless it is there.
fn build(version: &str, origin: &[&OsStr]) -> Result<PathBuf, String> {
    let sources = sources().ok_or("crates/loadgen-official/bridge is not there")?;
    let cache = crate::oracle::cache().join(format!("plugins-{:016x}", fingerprint(&sources)));
    let file = cache.join(format!("libregatta_loadgen-{version}-NA.so"));
    fs::create_dir_all(&cache).map_err(|e| format!("{}: {e}", cache.display()))?;
    // Tests run in parallel, in threads and in processes; only one of them builds.
    let lock = fs::File::create(cache.join("lock")).map_err(|e| e.to_string())?;
    lock.lock().map_err(|e| e.to_string())?;
    if file.exists() {
        return Ok(file);
    }
    let built = Command::new(sources.join("build.sh"))
        .args(origin)
        .arg("--out")
        .arg(&cache)
        .output()
        .map_err(|e| format!("build.sh: {e}"))?;
    if built.status.success() {
        return Ok(file);
    }
    Err(String::from_utf8_lossy(&built.stderr).trim().to_owned())
}

/// Returns a hash of the plug-in's sources, so that tests never use an outdated build.
fn fingerprint(sources: &Path) -> u64 {
    let made_of = [
        "build.sh",
        "shim.cc",
        "settings.cc",
        "settings.h",
        "regatta_loadgen.h",
        "exports.map",
    ];
    let bytes = made_of
        .iter()
        .flat_map(|name| fs::read(sources.join(name)).unwrap());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Returns the plug-in's sources, from any package of the workspace.
fn sources() -> Option<PathBuf> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package
        .ancestors()
        .map(|above| above.join("crates/loadgen-official/bridge"))
        .find(|sources| sources.is_dir())
}
