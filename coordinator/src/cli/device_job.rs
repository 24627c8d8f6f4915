//! Flags and requests of runs that are not measurements: engine builds, asset fetches and searches for settings. They are queued, watched,
//! logged and aborted like other runs.

use regatta_config::catalogue::Catalogue;
use regatta_types::documents::{EngineKind, RunTask};

use super::{
    Context,
    run::{self, drafts::DraftRequest, dry_run},
    setting_flags::SettingFlags,
    target_devices::TargetDevices,
    wait::WaitFlags,
};
use crate::exit::{CommandResult, Failure};
use regatta_lab_runs::Words;

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
    /// An asset that the runs need in addition to the benchmark's files, such as a calibration cache
    #[arg(long, value_name = "PATH")]
    asset: Vec<String>,
    /// End the job on a device after this time, such as 2h [default: no limit]
    #[arg(long, value_name = "T")]
    limit: Option<String>,
    /// Include devices that are quarantined or in maintenance
    #[arg(long)]
    force: bool,
    /// Show what would be requested
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    waiting: WaitFlags,
}

impl JobArgs {
    /// Returns the words of the flags for a task.
    pub(super) fn words(&self, task: RunTask, engine: EngineKind) -> Words {
        Words {
            benchmark: self.benchmark.clone(),
            scenario: self.scenario.clone(),
            round: self.settings.round.clone(),
            engine: Some(engine.to_string()),
            system: self.settings.system.clone(),
            set: self.settings.set(),
            asset: self.asset.clone(),
            limit: self.limit.clone(),
            task,
            ..Words::default()
        }
    }
}

/// Requests the words of the selected devices, and waits for them.
pub(super) fn request(args: &JobArgs, words: Words, context: &Context) -> CommandResult {
    let (workspace, store) = context.open_store()?;
    let catalogue = Catalogue::read(Some(&workspace.configs())).map_err(Failure::usage)?;
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
    args.waiting.expect_served(context, &workspace)?;
    store.all_or_nothing(|store| drafts.iter().try_for_each(|draft| store.request_run(draft)))?;
    run::finish((args.waiting.no_wait, 0), &drafts, context, &workspace, &store)
}
