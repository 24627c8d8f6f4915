//! `regatta device doctor`: asks a device what it is and whether it is fit to measure, over the channel that carries its runs.
//! The device judges; here its words are shown.

use std::time::{Duration, Instant};

use regatta_text::HumanDuration;
use regatta_types::documents::RunPhase;

use super::{Context, lookup};
use crate::{
    exit::{self, CommandResult, Failure},
    store::{DeviceRow, Examination, Store},
    tables,
    workspace::Workspace,
};

/// How often it is looked whether the answer has come.
const LOOK: Duration = Duration::from_millis(100);

/// Flags of `device doctor`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Its name or id; the only one, when there is one
    device: Option<String>,
    /// How long to wait for the answer
    #[arg(long, value_name = "T", default_value = "30s")]
    timeout: HumanDuration,
}

pub(super) fn run(args: &Args, context: &Context, workspace: &Workspace, store: &Store) -> CommandResult {
    let device = lookup::device(store, args.device.as_deref())?;
    if !workspace.is_served() {
        return Err(
            Failure::could_not(format!("no coordinator serves {}", workspace.root().display()))
                .hint("start `regatta serve` there"),
        );
    }
    if !device.online {
        return Err(
            Failure::could_not(format!("{} is not there", device.name)).hint(format!(
                "it was last heard of at {}; `regatta-agent doctor` on the device needs no coordinator",
                tables::time(&device.last_seen)
            )),
        );
    }
    let question = store.request_examination(&device.id)?;
    let begun = Instant::now();
    let milliseconds = args.timeout.millis();
    loop {
        match store.examination(question)? {
            Some(Examination::Found { json, text }) => return show(context, &device, &json, &text),
            Some(Examination::Refused(why)) => {
                return Err(
                    Failure::could_not(format!("{} did not look: {why}", device.name)).hint(format!(
                        "its agent is `{}`; one of this version can (docs/headless.md, Upgrade)",
                        device.agent
                    )),
                );
            }
            None if begun.elapsed() >= Duration::from_millis(milliseconds) => {
                return Err(no_answer(store, &device)?);
            }
            None => std::thread::sleep(LOOK),
        }
    }
}

fn show(context: &Context, device: &DeviceRow, json: &str, text: &str) -> CommandResult {
    let found: serde_json::Value = serde_json::from_str(json)
        .map_err(|e| Failure::could_not(format!("{} answered what is no JSON: {e}", device.name)))?;
    context.print(&found, || text.trim_end().to_owned())?;
    let is_fit = found.get("fit").and_then(serde_json::Value::as_bool);
    Ok(if is_fit == Some(true) { exit::OK } else { exit::NO })
}

fn no_answer(store: &Store, device: &DeviceRow) -> Result<Failure, Failure> {
    let runs = store.open_runs()?;
    let on = [RunPhase::Preparing, RunPhase::Ready, RunPhase::Running];
    let busy = runs
        .iter()
        .find(|run| run.device == device.id && on.contains(&run.state.phase));
    let failure = Failure::could_not(format!("{} did not answer in time", device.name));
    Ok(match busy {
        Some(run) => failure.hint(format!(
            "run {} is on, and it answers between runs; --timeout waits longer",
            run.id
        )),
        None => failure.hint("`regatta device list` shows whether it is there"),
    })
}
