//! `regatta engine list` and `remove`: the engines in a device's cache. Listing is part of an examination. Removing is a run, so that the command is
//! signed, ordered among the device's runs, and recorded.

use std::time::Duration;

use regatta_catalogue::catalogue::Catalogue;
use regatta_types::{EngineKind, ExitCode, RunId, Scenario, documents::RunTask};
use serde_json::{Value, json};

use super::{
    Context,
    context::tell,
    examination::examine,
    resolve::resolve,
    run::{RunEnding, finish},
    wait::{Wait, WaitFlags},
};
use crate::{
    exit::{CommandResult, Failure},
    tables,
};
use regatta_lab_runs::{RateRetries, RunFiles, RunRequestInput};
use regatta_lab_store::{DeviceRow, RunDraft, Store, SystemChoice, workspace::Workspace};
use regatta_lab_views::lookup;

/// The benchmark of a removal. Any built-in benchmark works, because it has no effect.
const BENCHMARK: &str = "digits";
/// The maximum time until a device lists its engines.
const MAX_ANSWER_TIME: Duration = Duration::from_secs(30);

/// Flags of `engine list`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  regatta engine list --device boat-1
      the keys of its engines, with batch, TensorRT and chip; `regatta engine remove` removes them")]
pub(super) struct ListArgs {
    /// The device's name or id [default: the only device]
    #[arg(long)]
    device: Option<String>,
}

/// Flags of `engine remove`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  regatta engine remove --device boat-1 5f0c2a9be1d34c77
      remove an engine by its key
  regatta engine remove --device boat-1 --all
      remove all; runs rebuild the engines that they need")]
pub(super) struct RemoveArgs {
    /// The device's name or id [default: the only device]
    #[arg(long)]
    device: Option<String>,
    /// Keys of engines (see `engine list`)
    #[arg(
        value_name = "ENGINE",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    engines: Vec<String>,
    /// Remove all engines of the device
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    waiting: WaitFlags,
}

pub(super) fn list(args: &ListArgs, context: &Context) -> CommandResult {
    let (_, store) = context.open_store()?;
    let device = lookup::device(&store, args.device.as_deref())?;
    let (engines, further) = engines_of(&device, &store)?;
    context.print(&json!({ "engines": engines, "further_engines": further }), || {
        if engines.is_empty() {
            return format!("{} has no engines", device.name);
        }
        let text = |engine: &Value, key: &str| match &engine[key] {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let rows = engines.iter().map(|engine| {
            let error = text(engine, "error");
            let chip = if error.is_empty() {
                text(engine, "chip")
            } else {
                error
            };
            [
                text(engine, "key"),
                text(engine, "batch"),
                text(engine, "tensorrt"),
                chip,
            ]
        });
        let mut shown = tables::plain(["engine", "batch", "TensorRT", "chip"], rows);
        if further > 0 {
            shown.push_str(&format!("\n{further} more"));
        }
        shown
    })?;
    Ok(ExitCode::Success)
}

/// Requests the removal, and waits for it.
pub(super) fn remove(args: &RemoveArgs, context: &Context) -> CommandResult {
    let (workspace, store) = context.open_store()?;
    let device = lookup::device(&store, args.device.as_deref())?;
    args.waiting.expect_served(context, &workspace)?;
    let removal = Removal {
        device: &device,
        workspace: &workspace,
        store: &store,
        context,
    };
    let drafts = if args.all {
        removal.request_all(args.waiting.no_wait)?
    } else {
        removal.request(&args.engines)?
    };
    if drafts.is_empty() {
        context.print(&json!({ "runs": [] }), || {
            format!("{} has no engines", device.name)
        })?;
        return Ok(ExitCode::Success);
    }
    let ending = RunEnding {
        waits: !args.waiting.no_wait,
        retries: RateRetries { max: 0 },
    };
    finish(ending, &drafts, context, &workspace, &store)
}

/// The removal of engines from a device.
struct Removal<'a> {
    device: &'a DeviceRow,
    workspace: &'a Workspace,
    store: &'a Store,
    context: &'a Context,
}

impl Removal<'_> {
    /// Requests the removal of all engines. A device lists a part of them, so the next part is requested when the former is removed. Returns the
    /// requested runs, of which the last may not have ended.
    fn request_all(&self, no_wait: bool) -> Result<Vec<RunDraft>, Failure> {
        let mut requested = Vec::new();
        let mut former = Vec::new();
        loop {
            let (engines, further) = engines_of(self.device, self.store)?;
            let key = |engine: &Value| engine["key"].as_str().map(str::to_owned);
            let keys: Vec<String> = engines.iter().filter_map(key).collect();
            // The report of the runs says why engines are still there.
            if keys.is_empty() || keys == former {
                return Ok(requested);
            }
            let drafts = self.request(&keys)?;
            let ids: Vec<RunId> = drafts.iter().map(|draft| draft.spec.run).collect();
            requested.extend(drafts);
            if further == 0 {
                return Ok(requested);
            }
            if no_wait {
                tell(&format!(
                    "{} has {further} more engines than it lists: repeat the command when these are removed",
                    self.device.name
                ));
                return Ok(requested);
            }
            let wait = Wait {
                context: self.context,
                workspace: self.workspace,
                store: self.store,
                shows_progress: true,
                longest: None,
                is_viewer: false,
            };
            wait.for_runs(&ids)?;
            former = keys;
        }
    }

    /// Requests the removal of the engines with these keys.
    fn request(&self, keys: &[String]) -> Result<Vec<RunDraft>, Failure> {
        let Self {
            device,
            workspace,
            store,
            ..
        } = self;
        // The removal needs neither a model nor a GPU. Every agent has this engine, and it accepts the setting.
        let mut input = RunRequestInput {
            benchmark: BENCHMARK.to_owned(),
            scenario: vec![Scenario::Offline],
            engine: Some(EngineKind::Sim),
            system: Some(SystemChoice::None),
            task: RunTask::EngineRemoval,
            ..RunRequestInput::default()
        };
        input.set.gpu_engine = Some(keys.join(","));
        let catalogue = Catalogue::read(Some(&workspace.configs())).map_err(Failure::usage)?;
        let files = RunFiles::read(workspace, store)?;
        let mut drafts = resolve(&input, std::slice::from_ref(device), &catalogue, &files, store)?;
        // Engines of a quarantined device can be removed, too.
        drafts.iter_mut().for_each(|draft| draft.forced = true);
        store.all_or_nothing(|store| drafts.iter().try_for_each(|draft| store.runs().request(draft)))?;
        Ok(drafts)
    }
}

/// Returns the engines that a device lists, and the number of engines that it left out of the list.
fn engines_of(device: &DeviceRow, store: &Store) -> Result<(Vec<Value>, u64), Failure> {
    let found = examine(device, MAX_ANSWER_TIME, store)?;
    let installed = &found.document["installed"];
    let engines = installed["engines"].as_array().cloned().ok_or_else(|| {
        Failure::could_not(format!("{} does not list its engines", device.name))
            .hint("`regatta device deploy` brings it the agent of this version")
    })?;
    Ok((engines, installed["further_engines"].as_u64().unwrap_or(0)))
}
