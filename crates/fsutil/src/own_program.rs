//! The path by which this process's program can be started again. After an upgrade in place, the path of its file is gone or leads to another
//! version.

use std::{env, fs, io, os::unix::fs::MetadataExt as _, path::PathBuf, process};

/// Returns the path of the running program: that of its file, or of the kernel's link to it if the file was replaced or removed. The link is
/// valid while this process lives, also in other processes.
///
/// # Errors
/// The system's error, for example without `/proc`.
pub fn own_program() -> io::Result<PathBuf> {
    let link = PathBuf::from(format!("/proc/{}/exe", process::id()));
    let running = fs::metadata(&link)?;
    let path = env::current_exe()?;
    let is_same =
        fs::metadata(&path).is_ok_and(|found| (found.dev(), found.ino()) == (running.dev(), running.ino()));
    Ok(if is_same { path } else { link })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Set in the copy of this test's program: the file that takes its place.
    const REPLACEMENT: &str = "REGATTA_TEST_REPLACEMENT";
    const NAME: &str = "own_program::tests::a_program_whose_file_was_replaced_starts_itself";

    #[test]
    fn a_program_whose_file_was_replaced_starts_itself() {
        if let Some(replacement) = env::var_os(REPLACEMENT) {
            let own = env::current_exe().unwrap();
            assert_eq!(own_program().unwrap(), own);
            fs::rename(replacement, &own).unwrap();
            let mut list = process::Command::new(own_program().unwrap());
            let listed = list.arg("--list").output().unwrap();
            assert!(String::from_utf8_lossy(&listed.stdout).contains(NAME));
            return;
        }
        let directory = env::temp_dir().join(format!("own-program-{}", process::id()));
        fs::create_dir(&directory).unwrap();
        let (copy, replacement) = (directory.join("program"), directory.join("upgrade"));
        fs::copy(env::current_exe().unwrap(), &copy).unwrap();
        fs::write(&replacement, "no program").unwrap();
        let mut command = process::Command::new(&copy);
        let ended = command
            .args([NAME, "--exact"])
            .env(REPLACEMENT, &replacement)
            .output()
            .unwrap();
        fs::remove_dir_all(&directory).unwrap();
        assert!(
            ended.status.success(),
            "{}",
            String::from_utf8_lossy(&ended.stdout)
        );
    }
}
