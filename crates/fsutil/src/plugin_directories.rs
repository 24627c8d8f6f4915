//! The directories in which Regatta looks for libraries that it opens at run time: LoadGen plug-ins and TensorRT shims. Opens none.

use std::{
    env,
    path::{Path, PathBuf},
};

/// The installed plug-ins of the board's package.
const INSTALLED: &str = "/usr/lib/regatta";

/// Returns the directories of `REGATTA_PLUGINS` (separated by colons, as in `PATH`), the executable's directory and
/// `/usr/lib/regatta`, in the order in which they are searched.
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
