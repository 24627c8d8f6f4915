//! Flags and requests of runs that measure nothing: engine builds and asset fetches. They are queued, watched and aborted as other runs are,
//! and their log is the run's.

use regatta_config::catalogue::Catalogue;
use regatta_types::documents::{EngineKind, RunTask};

use super::{
    Context,
    run::{self, drafts::DraftRequest, dry_run},
    setting_flags::SettingFlags,
    target_devices::TargetDevices,
};
use crate::{
    exit::{CommandResult, Failure},
    runs::Words,
};

/// Flags that select devices and the runs that will need the result. They are the ones of `run`.
#[derive(Debug, clap::Args)]
pub(super) struct JobArgs {
    #[command(flatten)]
    devices: TargetDevices,
    /// The benchmark
    #[arg(long)]
    benchmark: String,
    /// Scenarios, comma separated: SingleStream, MultiStream, Server, Offline
    #[arg(long, value_delimiter = ',', required = true)]
    scenario: Vec<String>,
    #[command(flatten)]
    settings: SettingFlags,
    /// An asset that the runs need beside the benchmark's files, such as a calibration cache
    #[arg(long, value_name = "PATH")]
    asset: Vec<String>,
    /// How long a device may take before the coordinator ends it, such as 2h [default: no limit]
    #[arg(long, value_name = "T")]
    limit: Option<String>,
    /// Use devices that are quarantined or in maintenance, too
    #[arg(long)]
    force: bool,
    /// Show what would be requested
    #[arg(long)]
    dry_run: bool,
    /// Wait until every device has ended (the default)
    #[arg(long, overrides_with = "no_wait")]
    wait: bool,
    /// Return at once
    #[arg(long)]
    no_wait: bool,
}

/// Requests a task of the selected devices, and waits for them.
pub(super) fn request(args: &JobArgs, task: RunTask, engine: EngineKind, context: &Context) -> CommandResult {
    let (workspace, store) = context.open_store()?;
    let catalogue = Catalogue::read(Some(&workspace.configs())).map_err(Failure::usage)?;
    let words = Words {
        benchmark: args.benchmark.clone(),
        scenario: args.scenario.clone(),
        round: args.settings.round.clone(),
        engine: Some(engine.to_string()),
        system: args.settings.system.clone(),
        set: args.settings.set(),
        asset: args.asset.clone(),
        limit: args.limit.clone(),
        task,
        ..Words::default()
    };
    let request = DraftRequest {
        requests: &[words],
        plan: None,
        devices: &args.devices,
        force: args.force,
    };
    let drafts = request.drafts(&catalogue, &workspace, &store)?;
    if args.dry_run {
        return dry_run::show(&drafts, context, &store);
    }
    store.all_or_nothing(|store| drafts.iter().try_for_each(|draft| store.add_run(draft)))?;
    run::finish((args.no_wait, 0), &drafts, context, &workspace, &store)
}
