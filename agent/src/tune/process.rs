//! A child process of this program, with its output in files and a time limit. A crash (memory, a driver) ends the
//! child process and not the search.

use std::{
    fs::{self, File},
    io,
    os::unix::process::ExitStatusExt as _,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use super::trial_failure::TrialFailure;

const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A finished process.
pub(super) struct Ended {
    status: ExitStatus,
    /// Its output.
    pub(super) stdout: Vec<u8>,
    stderr: String,
}

/// Runs `program` with `words` for at most `patience`. Its output goes to `directory`, where the next process
/// overwrites it.
///
/// # Errors
/// When the process cannot be started or exceeds the limit.
pub(super) fn run(
    program: &Path,
    words: &[String],
    directory: &Path,
    patience: Duration,
) -> Result<Ended, TrialFailure> {
    let start_error = |error: io::Error| TrialFailure(format!("cannot be started: {error}"));
    let (out, err) = (directory.join("stdout"), directory.join("stderr"));
    let child = Command::new(program)
        .args(words)
        .stdin(Stdio::null())
        .stdout(File::create(&out).map_err(start_error)?)
        .stderr(File::create(&err).map_err(start_error)?)
        .spawn()
        .map_err(start_error)?;
    let status = wait(child, patience)?;
    Ok(Ended {
        status,
        stdout: fs::read(&out).unwrap_or_default(),
        stderr: fs::read_to_string(&err).unwrap_or_default(),
    })
}

/// Waits until the process ends, and kills it after `patience`.
fn wait(mut child: Child, patience: Duration) -> Result<ExitStatus, TrialFailure> {
    let begun = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if begun.elapsed() < patience => thread::sleep(POLL_INTERVAL),
            ended => {
                // The process may have ended just now.
                let _ = child.kill();
                let _ = child.wait();
                return Err(match ended {
                    Err(error) => format!("cannot be waited for: {error}").into(),
                    Ok(_) => "ran longer than the time limit, and was ended".into(),
                });
            }
        }
    }
}

impl Ended {
    /// Returns whether the process succeeded.
    pub(super) fn is_well(&self) -> bool {
        self.status.success()
    }

    /// Returns why the process failed, from its signal or its last line of output.
    pub(super) fn failure(&self) -> TrialFailure {
        let has_text = |line: &&str| !line.trim().is_empty() && !line.starts_with("For more information");
        let last = self.stderr.lines().rev().find(has_text);
        let last = last
            .unwrap_or_default()
            .trim()
            .trim_start_matches("regatta-agent: ");
        let reason = match self.status.signal() {
            Some(9) => "killed by signal 9, as the kernel does when memory runs out".to_owned(),
            Some(signal) => format!("killed by signal {signal} {last}").trim_end().to_owned(),
            None if last.is_empty() => format!("ended with code {}", self.status.code().unwrap_or_default()),
            None => last.to_owned(),
        };
        TrialFailure(reason)
    }
}
