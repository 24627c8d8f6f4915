//! `regatta device upgrade --show`: the newest upgrade, with every attempt.

use serde::Serialize;

use crate::{
    cli::Context,
    exit::{CommandResult, Failure},
    tables,
};
use regatta_lab_store::{RolloutAttempt, RolloutDevice, Store, workspace::Workspace};
use regatta_lab_views::wording;
use regatta_types::ExitCode;

/// An upgrade that no command continues.
const CUT_OFF: &str = "its command ended in the middle";

#[derive(Serialize)]
struct RolloutDocument {
    begun: String,
    state: String,
    waves: u64,
    devices: Vec<Device>,
}

#[derive(Serialize)]
struct Device {
    name: String,
    wave: u64,
    state: &'static str,
    attempts: Vec<RolloutAttempt>,
}

/// Shows the newest upgrade.
pub(super) fn show(context: &Context, workspace: &Workspace, store: &Store) -> CommandResult {
    let newest = store.rollouts().newest()?;
    let newest = newest.ok_or_else(|| Failure::misuse("no device was upgraded from this workspace"))?;
    let rows = store.rollouts().devices(newest.number)?;
    let is_under_way = newest.outcome.is_none() && workspace.is_upgrading();
    let document = RolloutDocument {
        begun: newest.begun,
        state: match newest.outcome {
            Some(outcome) => outcome,
            None if is_under_way => "under way".to_owned(),
            None => CUT_OFF.to_owned(),
        },
        waves: rows.iter().map(|row| row.wave).max().unwrap_or(0),
        devices: rows
            .into_iter()
            .map(|row| {
                let name = store.devices().get(&row.device)?.map(|device| device.name);
                Ok(Device {
                    name: name.unwrap_or_else(|| row.device.to_string()),
                    wave: row.wave,
                    state: state(&row, is_under_way),
                    attempts: row.attempts,
                })
            })
            .collect::<Result<_, Failure>>()?,
    };
    context.print(&document, || table(&document))?;
    Ok(ExitCode::Success)
}

fn state(device: &RolloutDevice, is_under_way: bool) -> &'static str {
    match device.attempts.last() {
        None => "waiting",
        Some(attempt) if attempt.is_good() => "upgraded",
        Some(attempt) if attempt.ended.is_some() => "failed",
        Some(_) if is_under_way => "under way",
        Some(_) => "cut off",
    }
}

fn table(document: &RolloutDocument) -> String {
    let done = document
        .devices
        .iter()
        .filter(|device| device.state == "upgraded")
        .count();
    let mut text = format!(
        "upgrade of {}: {}, {done} of {} devices upgraded\n\n",
        wording::time(&document.begun),
        document.state,
        document.devices.len()
    );
    let lines = document.devices.iter().map(|device| {
        let last = device.attempts.last();
        [
            device.name.clone(),
            format!("{} of {}", device.wave, document.waves),
            device.state.to_owned(),
            device.attempts.len().to_string(),
            last.and_then(|attempt| attempt.agent.clone()).unwrap_or_default(),
        ]
    });
    text.push_str(&tables::plain(
        ["device", "wave", "state", "attempts", "agent"],
        lines,
    ));
    for device in &document.devices {
        for attempt in &device.attempts {
            if let (Some(cause), Some(reason)) = (attempt.cause, &attempt.reason) {
                let (name, number) = (&device.name, attempt.number);
                text.push_str(&format!("\n{name}, attempt {number}: {cause}: {reason}"));
            }
        }
    }
    text
}
