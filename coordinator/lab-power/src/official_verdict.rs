//! The official checker's verdict on a session: power-dev's `check.py`, started and read.

use std::{
    fs::File,
    io,
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use regatta_fsutil::regular_file::{self, MAX_TEXT};
use regatta_types::documents::OfficialCheck;

/// The number of checks that the official program makes.
const CHECKS: usize = 11;
/// The longest time for them. A day's session takes seconds.
const PATIENCE: Duration = Duration::from_secs(300);
const PAUSE: Duration = Duration::from_millis(50);

/// The official checker's result.
#[derive(Debug)]
pub struct OfficialVerdict {
    /// The checks, in order.
    pub checks: Vec<OfficialCheck>,
    accepts: bool,
}

impl OfficialVerdict {
    /// Runs the program `checker`. Its output is kept in the file `output`.
    ///
    /// # Errors
    /// Returns an error when it does not start, does not end in time, or is killed.
    pub fn of(python: &Path, checker: &Path, session: &Path, output: &Path) -> io::Result<Self> {
        let file = File::create(output)?;
        let mut process = Command::new(python)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env_remove("MLPP_DEBUG")
            .arg(checker)
            .arg(session)
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            // Ctrl-C interrupts Regatta between sessions, and not the verdict on a session.
            .process_group(0)
            .spawn()?;
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = process.try_wait()? {
                break status;
            }
            if begun.elapsed() > PATIENCE {
                process.kill()?;
                process.wait()?;
                return Err(io::Error::other(format!(
                    "{} has not ended within {} s; its output is in {}",
                    checker.display(),
                    PATIENCE.as_secs(),
                    output.display()
                )));
            }
            thread::sleep(PAUSE);
        };
        if let Some(signal) = status.signal() {
            return Err(io::Error::other(format!(
                "{} was killed by signal {signal}, and the session is not judged; `regatta power check {}` judges it",
                checker.display(),
                session.display()
            )));
        }
        Ok(Self::read(
            &String::from_utf8_lossy(&regular_file::read(output, MAX_TEXT)?),
            status.success(),
        ))
    }

    pub(crate) fn read(text: &str, accepts: bool) -> Self {
        let check = |line: &str| {
            let (mark, name) = line.split_once("] ")?;
            let passed = match mark.trim_start().rsplit('[').next()? {
                "x" => true,
                " " => false,
                _ => return None,
            };
            let name = name.trim().to_owned();
            Some(OfficialCheck { name, passed })
        };
        Self {
            checks: text.lines().filter_map(check).collect(),
            accepts,
        }
    }

    /// Returns whether the official checker accepts the session: it exits with 0 and reports every check as passed.
    pub fn passes(&self) -> bool {
        self.accepts && self.checks.len() == CHECKS && self.checks.iter().all(|check| check.passed)
    }

    /// Returns whether the official checker reports exactly these checks as failed.
    pub fn refuses_only(&self, checks: &[&str]) -> bool {
        let failed = self.checks.iter().filter(|check| !check.passed);
        self.checks.len() == CHECKS && failed.map(|check| check.name.as_str()).eq(checks.iter().copied())
    }

    /// Returns the verdict in a few words.
    pub fn summary(&self) -> String {
        let passed = self.checks.iter().filter(|check| check.passed).count();
        match self.checks.len() {
            CHECKS => format!("{passed} of {CHECKS} checks passed"),
            reported => format!("{passed} checks passed; it reported {reported} of {CHECKS}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_checker_that_does_not_report_every_check_accepts_nothing() {
        let good = "[x] Check\n".repeat(CHECKS);
        assert!(OfficialVerdict::read(&good, true).passes());
        assert!(!OfficialVerdict::read(&good, false).passes());
        assert!(!OfficialVerdict::read("", true).passes(), "an empty program");
        let fewer = OfficialVerdict::read(&"[x] Check\n".repeat(10), true);
        assert!(!fewer.passes());
        assert_eq!(fewer.summary(), "10 checks passed; it reported 10 of 11");
        let failed = good.replacen("[x]", "[ ]", 1);
        assert!(!OfficialVerdict::read(&failed, true).passes());
    }

    #[test]
    fn a_killed_checker_is_no_verdict() {
        let directory = tempfile::tempdir().unwrap();
        let checker = directory.path().join("check.py");
        fs::write(&checker, "kill -KILL $$\n").unwrap();
        let output = directory.path().join("output");
        let result = OfficialVerdict::of(Path::new("sh"), &checker, directory.path(), &output);
        let error = result.unwrap_err().to_string();
        assert!(error.contains("killed by signal 9"), "{error}");
    }

    #[test]
    fn its_output_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let checker = directory.path().join("check.py");
        fs::write(&checker, "echo '[x] Check UUID'; echo trouble >&2; exit 1\n").unwrap();
        let output = directory.path().join("output");
        let verdict = OfficialVerdict::of(Path::new("sh"), &checker, directory.path(), &output).unwrap();
        assert_eq!(verdict.checks.len(), 1);
        assert!(fs::read_to_string(output).unwrap().contains("trouble"));
    }
}
