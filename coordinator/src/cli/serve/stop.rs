//! `regatta serve --stop`: ends the coordinator that serves the workspace as Ctrl-C would, and waits until it has ended.

use std::{
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::{
    cli::{Context, context::tell},
    exit::{self, CommandResult, Failure},
};
use regatta_lab_store::workspace::Workspace;

/// The interval for looking whether it has ended.
const PAUSE: Duration = Duration::from_millis(50);
/// The time after which a command that waits says so.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most time that an end may take: messages are stored, and a run that is being judged is finished.
const MAX_END: Duration = Duration::from_secs(120);

/// Ends the coordinator. The exit code is 0 when none serves the workspace any more.
pub(super) fn stop(context: &Context) -> CommandResult {
    let workspace = context.open()?;
    let root = workspace.root().display();
    if !workspace.is_served() {
        let document = json!({ "workspace": workspace.root(), "process": null, "stopped": false });
        context.print(&document, || format!("no coordinator serves {root}"))?;
        return Ok(exit::OK);
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
    Ok(exit::OK)
}

/// Returns the process that serves the workspace. One that has just locked it has not written its number yet.
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
        "which process serves {} cannot be found out",
        workspace.root().display()
    ))
    .hint("end it on the machine on which it runs")
}

/// Waits until nobody serves the workspace.
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
