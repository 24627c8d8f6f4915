//! `regatta run --dry-run`: shows the runs of a request without queueing them.

use std::collections::BTreeMap;

use regatta_types::{DeviceId, ExitCode, documents::RunTask};
use serde_json::json;

use super::super::Context;
use crate::{exit::CommandResult, tables};
use regatta_lab_store::{RunDraft, Store};

/// Prints the drafts. Their ids are not used later.
pub(in crate::cli) fn show(drafts: &[RunDraft], context: &Context, store: &Store) -> CommandResult {
    let names = store.devices().names()?;
    let specs: Vec<_> = drafts.iter().map(|draft| &draft.spec).collect();
    context.print(&json!({ "dry_run": true, "specs": specs }), || {
        let runs = if drafts.len() == 1 { "run" } else { "runs" };
        format!("{}\nwould queue {} {runs}", table(drafts, &names), drafts.len())
    })?;
    Ok(ExitCode::Success)
}

fn table(drafts: &[RunDraft], names: &BTreeMap<DeviceId, String>) -> String {
    let lines = drafts.iter().map(|draft| {
        let spec = &draft.spec;
        let settings = spec.engine.settings.assignments().into_iter();
        let conf = draft
            .user_settings
            .iter()
            .map(|(key, value)| format!("{key}={value}"));
        [
            names
                .get(&spec.device)
                .cloned()
                .unwrap_or_else(|| spec.device.to_string()),
            format!("{} {}", spec.benchmark.name, spec.scenario),
            match spec.task {
                RunTask::Measurement => spec.mode.to_string(),
                task => task.describe().to_owned(),
            },
            spec.engine.kind.to_string(),
            settings.chain(conf).collect::<Vec<_>>().join(" "),
        ]
    });
    tables::plain(["device", "run", "mode", "engine", "settings"], lines)
}
