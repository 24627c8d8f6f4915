//! The record of skipped tests: a file per test process in `skipped-tests` below cargo's target directory, a line per skip. A test runner
//! may give each test a separate process, so only files can collect them.

use std::{
    env,
    fs::{self, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    process, thread,
};

/// Appends a line for the current test: binary, test and reason, separated by tabs.
pub(crate) fn record(reason: &str) {
    // Tests of an archive run outside of a target directory; then the printed reason is all.
    let Some(executable) = env::current_exe().ok() else {
        return;
    };
    let Some(directory) = directory_of(&executable) else {
        return;
    };
    let line = format!(
        "{}\t{}\t{}\n",
        binary_name(&executable),
        test_name(),
        reason.split_whitespace().collect::<Vec<_>>().join(" ")
    );
    if let Err(error) = append(&directory, &line) {
        panic!(
            "a skipped test cannot be recorded in {}: {error}",
            directory.display()
        );
    }
}

fn append(directory: &Path, line: &str) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let file = directory.join(process::id().to_string());
    // One write, so that threads do not mix their lines.
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(file)?
        .write_all(line.as_bytes())
}

/// Returns the directory of the record for a test executable, `target/PROFILE/deps/NAME-HASH`.
fn directory_of(executable: &Path) -> Option<PathBuf> {
    let deps = executable.parent().filter(|parent| parent.ends_with("deps"))?;
    Some(deps.parent()?.parent()?.join("skipped-tests"))
}

/// Returns the name of a test executable without cargo's hash.
fn binary_name(executable: &Path) -> String {
    let stem = executable
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    match stem.rsplit_once('-') {
        Some((name, hash)) if hash.len() == 16 => name.to_owned(),
        _ => stem,
    }
}

/// Returns the name of the current test: the one that the runner asked this process for, or else the name of its thread.
fn test_name() -> String {
    let mut arguments = env::args().skip_while(|argument| argument != "--exact").skip(1);
    match arguments.next() {
        Some(name) if !name.starts_with('-') => name,
        _ => thread::current().name().unwrap_or("unknown").to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_is_below_the_target_directory() {
        let executable = Path::new("/target/debug/deps/serve-0123456789abcdef");
        assert_eq!(
            directory_of(executable),
            Some(PathBuf::from("/target/skipped-tests"))
        );
        assert_eq!(binary_name(executable), "serve");
        assert_eq!(directory_of(Path::new("/board/tests/serve")), None);
        assert_eq!(binary_name(Path::new("/board/tests/known-hosts")), "known-hosts");
    }

    #[test]
    fn a_line_is_appended_per_skip() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("skipped-tests");
        append(&place, "one\n").unwrap();
        append(&place, "two\n").unwrap();
        let file = place.join(process::id().to_string());
        assert_eq!(fs::read_to_string(file).unwrap(), "one\ntwo\n");
        assert!(test_name().ends_with("a_line_is_appended_per_skip"));
    }
}
