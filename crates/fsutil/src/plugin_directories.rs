//! The search directories of libraries that Regatta opens at run time: LoadGen plug-ins and TensorRT shims. This module opens none.

use std::{
    env,
    path::{Path, PathBuf},
};

/// Directory of the plug-ins that the board's package installs.
const INSTALLED: &str = "/usr/lib/regatta";

/// Returns the search directories in their order: those of `REGATTA_PLUGINS` (separated by colons, like `PATH`), the executable's
/// directory, and `/usr/lib/regatta`.
#[must_use]
pub fn plugin_directories() -> Vec<PathBuf> {
    let named = env::var_os("REGATTA_PLUGINS").unwrap_or_default();
    let mut directories: Vec<_> = env::split_paths(&named)
        .filter(|directory| !directory.as_os_str().is_empty())
        .collect();
    let beside = env::current_exe()
        .ok()
        .and_then(|exe| exe.parent().map(Path::to_owned));
    directories.extend(beside);
    directories.push(PathBuf::from(INSTALLED));
    directories
}
