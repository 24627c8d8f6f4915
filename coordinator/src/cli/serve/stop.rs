//! `regatta serve --stop`: ends the coordinator that serves the workspace, in the same way as Ctrl-C, and waits until it has ended.

use std::{
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::{
    cli::{Context, context::tell},
    exit::{CommandResult, Failure},
};
use regatta_lab_store::workspace::Workspace;
use regatta_types::ExitCode;

/// The interval between checks whether it has ended.
const PAUSE: Duration = Duration::from_millis(50);
/// The time after which a waiting command prints that it waits.
const PATIENCE: Duration = Duration::from_secs(5);
/// The maximum time until a coordinator has ended. It stores its messages, and finishes judging a run.
const MAX_END: Duration = Duration::from_secs(120);

/// Ends the coordinator. The exit code is 0 if no coordinator serves the workspace afterwards.
pub(super) fn stop(context: &Context) -> CommandResult {
    let workspace = context.open()?;
    let root = workspace.root().display();
    if !workspace.is_served() {
        let document = json!({ "workspace": workspace.root(), "process": null, "stopped": false });
        context.print(&document, || format!("no coordinator serves {root}"))?;
        return Ok(ExitCode::Success);
    }
    let process = process(&workspace)?;
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| unknown(&workspace))?;
    kill_process(pid, Signal::TERM).map_err(|error| {
        Failure::could_not(format!(
            "cannot end process {process}, which serves {root}: {error}"
        ))
    })?;
    wait(&workspace, process)?;
    let document = json!({ "workspace": workspace.root(), "process": process, "stopped": true });
    context.print(&document, || {
        format!("the coordinator of {root} (process {process}) has ended")
    })?;
    Ok(ExitCode::Success)
}

/// Returns the process that serves the workspace. Retries, because a process writes its number shortly after it locks the workspace.
fn process(workspace: &Workspace) -> Result<u32, Failure> {
    const ATTEMPTS: usize = 20;
    for _ in 0..ATTEMPTS {
        if let Some(process) = workspace.serving_process() {
            return Ok(process);
        }
        thread::sleep(PAUSE);
    }
    Err(unknown(workspace))
}

fn unknown(workspace: &Workspace) -> Failure {
    Failure::could_not(format!(
        "cannot determine which process serves {}",
        workspace.root().display()
    ))
    .hint("end it on the machine where it runs")
}

/// Waits until no process serves the workspace.
fn wait(workspace: &Workspace, process: u32) -> Result<(), Failure> {
    let (begun, mut has_reported) = (Instant::now(), false);
    while workspace.is_served() {
        if begun.elapsed() > MAX_END {
            return Err(Failure::could_not(format!(
                "process {process} has not ended within {} s",
                MAX_END.as_secs()
            ))
            .hint(format!(
                "`kill -9 {process}` ends it; nothing that was acknowledged is lost"
            )));
        }
        if begun.elapsed() > PATIENCE && !has_reported {
            tell(&format!("waiting until process {process} has ended"));
            has_reported = true;
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}
