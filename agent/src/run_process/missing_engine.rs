//! Builds an engine that is missing for a run: `engine build` in a separate process, in the process group of the run, so that an abort ends
//! it too. The caller decides which engine is missing, and whether it may be built.

use std::{
    io::{self, BufRead as _, BufReader, Write as _},
    os::unix::process::CommandExt as _,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, anyhow};

use crate::cli::BuildCommand;

/// The least interval between two reports. A report is a message and a write to disk.
const REPORT_INTERVAL: Duration = Duration::from_secs(5);

/// Builds an engine. Its messages go to the run's log; `report` gets what the run waits for.
///
/// # Errors
/// When the build cannot start or fails.
pub(super) fn build(command: &BuildCommand, report: impl Fn(String)) -> anyhow::Result<()> {
    let mut child = Command::new("/proc/self/exe")
        .arg0("regatta-agent")
        .args(command.words())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("the run's engine cannot be built: `{command}` does not start"))?;
    let mut last_line = String::new();
    let mut reported: Option<Instant> = None;
    let lines = child.stderr.take().into_iter();
    for line in lines.flat_map(|stderr| BufReader::new(stderr).split(b'\n')) {
        // The end of the process is awaited below.
        let Ok(line) = line else { break };
        let line = String::from_utf8_lossy(&line).into_owned();
        // The log may be on a full disk.
        let _ = writeln!(io::stderr(), "{line}");
        if reported.is_none_or(|at| at.elapsed() >= REPORT_INTERVAL) {
            report(format!("builds its engine: {line}"));
            reported = Some(Instant::now());
        }
        last_line = line;
    }
    let status = child.wait().context("the end of the engine's build is unknown")?;
    if status.success() {
        return Ok(());
    }
    let why = last_line.strip_prefix("regatta-agent: ").unwrap_or(&last_line);
    Err(anyhow!(
        "the run's engine cannot be built by `{command}` ({status}): {why}"
    ))
}
