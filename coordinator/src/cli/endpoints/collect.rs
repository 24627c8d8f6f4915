//! `regatta endpoints collect`, and the end of `endpoints run --device`: the device's signed part is copied into the directory of the run.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use regatta_endpoints::{DeviceRun, EndpointsSession};
use regatta_fsutil::hash::sha256_of_file;
use regatta_lab_runs::{MANIFEST, run_failure};
use regatta_lab_store::{RunRow, Store, workspace::Workspace};
use regatta_types::{ExitCode, RunId, documents::document_name};
use serde_json::json;

use super::failure;
use crate::{
    cli::{Context, context::tell, device_watch::DeviceWatch, export, interrupts::end_requested, runtime},
    exit::{CommandResult, Failure},
};

/// The pause between two looks at the run.
const PAUSE: Duration = Duration::from_millis(200);
/// The device's part, in the directory of the endpoints run.
const DEVICE: &str = "device";

/// Flags of `endpoints collect`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  regatta endpoints collect thor-1-qwen
      complete a run whose command ended before the device had delivered its part")]
pub(in crate::cli) struct CollectArgs {
    /// The directory of the run
    run: PathBuf,
}

/// The lab of a command.
#[derive(Clone, Copy)]
pub(super) struct LabHandles<'a> {
    pub(super) context: &'a Context,
    pub(super) workspace: &'a Workspace,
    pub(super) store: &'a Store,
}

impl LabHandles<'_> {
    pub(super) fn row(&self, run: RunId) -> Result<RunRow, Failure> {
        let row = self.store.runs().get(run)?;
        row.ok_or_else(|| Failure::could_not(format!("run {run} is missing from the store")))
    }
}

pub(super) fn run(args: &CollectArgs, context: &Context) -> CommandResult {
    let mut session = EndpointsSession::read(&args.run).map_err(failure)?;
    let Some(device_run) = session.device_run.clone() else {
        return Err(Failure::misuse(format!(
            "no device started the server of {}",
            args.run.display()
        )));
    };
    if device_run.evidence_sha256.is_none() {
        let (workspace, store) = context.open_store()?;
        let lab = LabHandles {
            context,
            workspace: &workspace,
            store: &store,
        };
        let runtime = runtime()?;
        let end = end_requested(&runtime)?;
        collect(&mut session, &device_run, &args.run, lab, &end)?;
    }
    let document = json!({ "run": args.run, "is_result": session.is_result(), "session": session });
    context.print(&document, || super::run::text(&session, &args.run))?;
    Ok(match session.is_result() {
        true => ExitCode::Success,
        false => ExitCode::Negative,
    })
}

/// Waits for the record of the device's run, copies the run, and completes the session's document.
///
/// # Errors
/// Returns an error when the wait is ended or the copy fails. The session is then incomplete, and can be collected later.
pub(super) fn collect(
    session: &mut EndpointsSession,
    device_run: &DeviceRun,
    directory: &Path,
    lab: LabHandles<'_>,
    end: &AtomicBool,
) -> Result<(), Failure> {
    let collected = collected(device_run, directory, lab, end).map_err(|failure| {
        let later = format!("endpoints collect {}", directory.display());
        failure.hint(format!("complete the run later: {}", lab.context.command(&later)))
    })?;
    session.end_device_run(directory, collected).map_err(failure)
}

fn collected(
    device_run: &DeviceRun,
    directory: &Path,
    lab: LabHandles<'_>,
    end: &AtomicBool,
) -> Result<DeviceRun, Failure> {
    let run: RunId = device_run.run.parse().map_err(Failure::usage)?;
    let row = wait_for_record(run, &device_run.device, lab, end)?;
    let copy = directory.join(DEVICE);
    // It is written last: what a killed command has copied is copied again.
    if !copy.join(MANIFEST).exists() {
        match fs::remove_dir_all(&copy) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(Failure::from(error)),
            _ => {}
        }
        for line in export::export(lab.workspace, lab.store, &row, &copy)? {
            tell(&line);
        }
    }
    let evidence = sha256_of_file(&copy.join("files").join(document_name::EVIDENCE)).map(|hash| hash.hex());
    let failure = match (run_failure(&row), &evidence) {
        (Some((_, reason)), _) => Some(reason),
        (None, Err(error)) => Some(format!("it has no evidence: {error}")),
        (None, Ok(_)) => None,
    };
    Ok(DeviceRun {
        evidence_sha256: evidence.ok(),
        failure,
        ..device_run.clone()
    })
}

/// Waits until the run is recorded, and tells what it waits for.
fn wait_for_record(
    run: RunId,
    device: &str,
    lab: LabHandles<'_>,
    end: &AtomicBool,
) -> Result<RunRow, Failure> {
    let mut watch = DeviceWatch::default();
    let mut has_reported = false;
    loop {
        let row = lab.row(run)?;
        if row.is_over() {
            return Ok(row);
        }
        if end.load(Ordering::Relaxed) {
            return Err(Failure::interrupted(format!(
                "{device} has not delivered its part of the run, run {run}"
            )));
        }
        let report = watch.look(std::slice::from_ref(&row), lab.store)?;
        report.changes.iter().for_each(|change| tell(change));
        if !lab.workspace.is_served() && !has_reported {
            tell(&format!(
                "the coordinator has ended; start it again: {}",
                lab.context.command("serve")
            ));
            has_reported = true;
        }
        thread::sleep(PAUSE);
    }
}
