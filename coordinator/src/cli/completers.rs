//! Completes values on the command line from the workspace: names of devices, runs, campaigns, benchmarks, rounds, systems, settings.

use std::{env, ffi::OsStr, path::PathBuf};

use clap::{Command, builder::StyledStr};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use regatta_catalogue::catalogue::{BenchmarkCatalogue, RoundCatalogue, SystemCatalogue};
use regatta_types::engine_settings::SETTINGS;

use super::{Context, context::Format};
use regatta_lab_store::{Store, workspace::Workspace};
use regatta_lab_views::wording::{run_text, short_id};

/// The number of runs that are offered, the newest.
const MAX_RUNS: usize = 50;

/// What the values of an argument name.
#[derive(Debug, Clone, Copy)]
enum Named {
    Devices,
    Labels,
    Runs,
    Campaigns,
    Benchmarks,
    Rounds,
    Systems,
    Settings,
    /// What `compare` and `history` take.
    Selections,
}

impl Named {
    /// Returns what an argument of a command names. `command` is the command without the program's name, such as `runs show`.
    fn of(command: &str, argument: &str) -> Option<Self> {
        let group = command.split(' ').next().unwrap_or_default();
        Some(match (group, argument) {
            ("compare", "sides") | ("history", "selection") => Self::Selections,
            ("device", "name") if !matches!(command, "device add" | "device deploy" | "device image") => {
                Self::Devices
            }
            ("campaign", "name") => Self::Campaigns,
            ("benchmark" | "data", "name" | "names") => Self::Benchmarks,
            ("device", "devices") | (_, "device") => Self::Devices,
            (_, "device_label") => Self::Labels,
            ("runs" | "accuracy" | "audit", "run" | "runs" | "performance") => Self::Runs,
            (_, "campaign") => Self::Campaigns,
            (_, "benchmark") => Self::Benchmarks,
            (_, "round") => Self::Rounds,
            (_, "system") => Self::Systems,
            (_, "set") => Self::Settings,
            _ => return None,
        })
    }
}

/// Adds completion to the arguments of a command and of its subcommands.
pub(super) fn add(command: Command, parent: &str) -> Command {
    let path = format!("{parent} {}", command.get_name()).trim_start().to_owned();
    let of_arguments = path.clone();
    command
        .mut_args(|arg| match Named::of(&of_arguments, arg.get_id().as_str()) {
            Some(named) => arg.add(ArgValueCompleter::new(move |current: &OsStr| {
                complete(named, current)
            })),
            None => arg,
        })
        .mut_subcommands(|subcommand| add(subcommand, &path))
}

/// Returns the values that begin with `current`. Without a workspace there are only the built-in ones.
fn complete(named: Named, current: &OsStr) -> Vec<CompletionCandidate> {
    let Some(current) = current.to_str() else {
        return Vec::new();
    };
    let context = Context::new(named_workspace(), Format::Text);
    let workspace = Workspace::open(&context.workspace).ok();
    let values = values(named, workspace.as_ref()).unwrap_or_default().into_iter();
    values
        .filter(|(value, _)| value.starts_with(current))
        .enumerate()
        .map(|(order, (value, help))| {
            let help = (!help.is_empty()).then(|| StyledStr::from(help));
            CompletionCandidate::new(value)
                .help(help)
                .display_order(Some(order))
        })
        .collect()
}

/// Returns the workspace that the command line to complete names.
fn named_workspace() -> Option<PathBuf> {
    let arguments: Vec<_> = env::args_os().collect();
    let named = arguments.iter().enumerate().find_map(|(at, argument)| {
        if argument == "--workspace" {
            return arguments.get(at + 1).cloned();
        }
        let value = argument.to_str()?.strip_prefix("--workspace=")?;
        Some(value.into())
    });
    named
        .or_else(|| env::var_os(super::context::WORKSPACE_VARIABLE))
        .map(PathBuf::from)
}

/// Returns values with their descriptions.
fn values(named: Named, workspace: Option<&Workspace>) -> anyhow::Result<Vec<(String, String)>> {
    let configs = workspace.map(Workspace::configs);
    let configs = configs.as_deref();
    let store = || workspace.map(|workspace| workspace.store()).transpose();
    let alone = |values: Vec<String>| values.into_iter().map(|value| (value, String::new())).collect();
    Ok(match named {
        Named::Benchmarks => {
            let catalogue = BenchmarkCatalogue::read(configs)?;
            alone(
                catalogue
                    .all()
                    .iter()
                    .map(|benchmark| benchmark.name.clone())
                    .collect(),
            )
        }
        Named::Rounds => {
            let catalogue = RoundCatalogue::read(configs)?;
            alone(catalogue.all()?.iter().map(|round| round.name.clone()).collect())
        }
        Named::Systems => {
            let catalogue = SystemCatalogue::read(configs)?;
            catalogue
                .all()
                .map(|(_, system)| (system.name.clone(), system.title.clone()))
                .collect()
        }
        Named::Settings => {
            let settings = SETTINGS.iter();
            settings
                .map(|setting| (format!("{}=", setting.name), setting.doc.to_owned()))
                .collect()
        }
        Named::Devices => match store()? {
            Some(store) => {
                let rows = store.devices().all()?.into_iter();
                rows.map(|row| (row.name, row.id.to_string())).collect()
            }
            None => Vec::new(),
        },
        Named::Labels => match store()? {
            Some(store) => alone(store.labels().all()?.keys().map(ToString::to_string).collect()),
            None => Vec::new(),
        },
        Named::Campaigns => match store()? {
            Some(store) => alone(store.campaigns().all()?.into_iter().map(|row| row.name).collect()),
            None => Vec::new(),
        },
        Named::Runs => match store()? {
            Some(store) => runs(&store)?,
            None => Vec::new(),
        },
        Named::Selections => {
            let mut found = Vec::new();
            for (kind, named) in [
                ("device:", Named::Devices),
                ("label:", Named::Labels),
                ("campaign:", Named::Campaigns),
                ("set:", Named::Settings),
            ] {
                let values = values(named, workspace)?.into_iter();
                found.extend(values.map(|(value, help)| (format!("{kind}{value}"), help)));
            }
            found.extend(values(Named::Runs, workspace)?);
            found
        }
    })
}

/// Returns `last` and the newest runs.
fn runs(store: &Store) -> anyhow::Result<Vec<(String, String)>> {
    let rows = store.runs().page(&Default::default(), MAX_RUNS)?;
    let newest = rows
        .first()
        .map(|row| ("last".to_owned(), run_text::subject(row)));
    let rows = rows.iter().map(|row| {
        let subject = format!("{}: {}", run_text::subject(row), run_text::state(row));
        (short_id(row.id), subject)
    });
    Ok(newest.into_iter().chain(rows).collect())
}
