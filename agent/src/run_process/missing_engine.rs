//! Builds the engines that a run lacks before it is prepared again. A build is `engine build` in a process of its own, in the process group of
//! the run, so that an abort ends it too. Whether an engine is suitable is decided elsewhere.

use std::{
    io::{self, BufRead as _, BufReader, Write as _},
    os::unix::process::CommandExt as _,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, anyhow};
use regatta_engines::{EngineError, tensorrt::BuildCommand};
use regatta_harness::SetUpError;
use regatta_types::engine_settings::EngineBuild;

use super::prepared_run::{PreparedRun, RunPlan};
use crate::exit::Failure;

/// The builds for one run: one for each kind of unit, or for each of three networks.
const MAX_BUILDS: usize = 3;
/// The least interval between two reports. A report is a message and a write to disk.
const REPORT_INTERVAL: Duration = Duration::from_secs(5);

/// Prepares a run, after its missing engines are built. `report` gets what the run waits for.
///
/// # Errors
/// As [`RunPlan::prepare`], or when a build fails.
pub(super) fn prepare(plan: &RunPlan, report: impl Fn(String)) -> Result<PreparedRun, Failure> {
    let mut built: Vec<BuildCommand> = Vec::new();
    loop {
        let failure = match plan.clone().prepare() {
            Ok(ready) => return Ok(ready),
            Err(failure) => failure,
        };
        let missing = missing(&failure).filter(|_| builds_missing(plan));
        match missing {
            Some(command) if built.len() < MAX_BUILDS && !built.contains(command) => {
                build(command, &report)?;
                built.push(command.clone());
            }
            _ => return Err(failure),
        }
    }
}

fn missing(failure: &Failure) -> Option<&BuildCommand> {
    match failure.error() {
        Some(SetUpError::Engine(EngineError::NoPlan { command, .. })) => Some(command),
        _ => None,
    }
}

/// Returns whether the settings allow a build. A named engine would not be the one that is built.
fn builds_missing(plan: &RunPlan) -> bool {
    let settings = &plan.engine.settings;
    settings.engine_build != Some(EngineBuild::Never)
        && settings.gpu_engine.is_none()
        && settings.dla_engine.is_none()
}

/// Builds an engine. Its messages go to the run's log.
fn build(command: &BuildCommand, report: &impl Fn(String)) -> Result<(), Failure> {
    let mut child = Command::new("/proc/self/exe")
        .arg0("regatta-agent")
        .args(command.words())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("the run's engine cannot be built: `{command}` does not start"))
        .map_err(Failure::could_not)?;
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
    let status = child
        .wait()
        .context("the end of the engine's build is unknown")
        .map_err(Failure::could_not)?;
    if status.success() {
        return Ok(());
    }
    let why = last_line.strip_prefix("regatta-agent: ").unwrap_or(&last_line);
    Err(Failure::could_not(anyhow!(
        "the run's engine cannot be built by `{command}` ({status}): {why}"
    )))
}
