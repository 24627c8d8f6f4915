//! Removes directories when a test process ends. A `static` is never dropped, and neither is a temporary directory in it.

use std::{
    fs,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

static DIRECTORIES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes a directory with its content when this process ends, unless the process is killed by a signal.
///
/// # Panics
/// Panics when the C library has no memory to register the function.
pub(crate) fn remove_at_exit(directory: PathBuf) {
    let mut directories = DIRECTORIES.lock().unwrap_or_else(PoisonError::into_inner);
    if directories.is_empty() {
        // SAFETY: the function takes no arguments, and does not unwind, because it cannot panic.
        let failed = unsafe { libc::atexit(remove_all) };
        assert_eq!(failed, 0, "atexit");
    }
    directories.push(directory);
}

extern "C" fn remove_all() {
    let mut directories = DIRECTORIES.lock().unwrap_or_else(PoisonError::into_inner);
    for directory in directories.drain(..) {
        let _ = fs::remove_dir_all(directory);
    }
}

#[cfg(test)]
mod tests {
    use std::{env, process::Command};

    use super::*;

    #[test]
    fn directory_is_removed_when_its_process_ends() {
        const DIRECTORY: &str = "REGATTA_TEST_REMOVED_DIRECTORY";
        if let Some(directory) = env::var_os(DIRECTORY) {
            fs::create_dir(&directory).unwrap();
            fs::write(PathBuf::from(&directory).join("file"), "content").unwrap();
            return remove_at_exit(directory.into());
        }
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("of-a-static");
        let ended = Command::new(env::current_exe().unwrap())
            .args([
                "--exact",
                "at_exit::tests::directory_is_removed_when_its_process_ends",
            ])
            .env(DIRECTORY, &directory)
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&ended.stdout);
        assert!(
            ended.status.success() && printed.contains("1 passed"),
            "{printed}"
        );
        assert!(!directory.exists());
    }
}
