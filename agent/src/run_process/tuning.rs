//! A run that tunes: `regatta-agent tune` as a child process, with the spec as its flags. The systems file and the search's output are files
//! of the run. The child is in this process's group, so the end of the run ends both.

use std::{
    fs::File,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context as _, anyhow};
use regatta_types::documents::{PowerSetting, RunLength, RunSpec};

use super::run_output::RunOutput;
use crate::exit::Failure;

/// The systems file.
const SYSTEM: &str = "tuned.toml";
/// What the search printed.
const REPORT: &str = "tune.txt";

/// Searches for the best settings of the spec's benchmark and scenario.
///
/// # Errors
/// [`Failure`] when the search cannot start, or found no settings that run.
pub(super) fn tune(
    spec: &RunSpec,
    spec_path: &Path,
    run_output: &RunOutput,
    scratch: Option<&Path>,
) -> Result<(), Failure> {
    let files = run_output.files();
    let report = files.join(REPORT);
    let printed = File::create(&report).with_context(|| format!("cannot write {}", report.display()))?;
    let power = match &spec.state {
        Some(state) if state.name == PowerSetting::MaxQ.as_str() => PowerSetting::MaxQ,
        _ => PowerSetting::MaxP,
    };
    let mut command = Command::new("/proc/self/exe");
    command.arg("tune").arg("--benchmark-file").arg(spec_path);
    command
        .arg("--mlperf-conf")
        .arg(files.join("mlperf.conf"))
        .arg("--output")
        .arg(files.join(SYSTEM));
    for (flag, value) in [
        ("--benchmark", spec.benchmark.name.clone()),
        ("--engine", spec.engine.kind.to_string()),
        ("--scenario", spec.scenario.to_string()),
        ("--loadgen", spec.loadgen.to_string()),
        ("--power-setting", power.as_str().to_owned()),
    ] {
        command.args([flag, value.as_str()]);
    }
    if let RunLength::Duration(milliseconds) = spec.length {
        command.args(["--limit", &format!("{milliseconds}ms")]);
    }
    if let Some(scratch) = scratch {
        command.arg("--scratch").arg(scratch);
    }
    for assignment in spec.engine.settings.assignments() {
        command.args(["--set", &assignment]);
    }
    // Standard output of this process has its events, and standard error is the run's log.
    let status = command
        .stdin(Stdio::null())
        .stdout(printed)
        .status()
        .context("the search cannot be started")?;
    match status.success() {
        true => Ok(()),
        false => Err(Failure::could_not(anyhow!(
            "the search found no settings that run ({status}); see {REPORT} and run.log for the reason"
        ))),
    }
}
