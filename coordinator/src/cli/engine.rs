//! `regatta engine build`: devices build the TensorRT engines of runs before these are requested. A build is a run that ends before LoadGen
//! starts: it is queued, watched and aborted as other runs are, and its log is the run's.
//!
//! Engines stay on their device. `regatta-agent engine` lists and inspects them there.

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

/// Subcommands of `engine`.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Builds the TensorRT engines of a benchmark on devices, those that are not there yet
    Build(Box<BuildArgs>),
}

/// Flags of `engine build`. Those that select the engine are the ones of `run`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  regatta engine build --device boat-1 --benchmark resnet50 --scenario Offline,SingleStream
      what runs of both scenarios on boat-1 need, with the settings of its system
  regatta engine build --device-label orin-nx --benchmark resnet50 --scenario Offline --set gpu_batch_size=64
      on every device with this label, for another batch size")]
pub(super) struct BuildArgs {
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
    /// An asset that the build needs beside the benchmark's files, such as a calibration cache
    #[arg(long, value_name = "PATH")]
    asset: Vec<String>,
    /// How long a device may build before the coordinator ends it, such as 2h [default: no limit]
    #[arg(long, value_name = "T")]
    limit: Option<String>,
    /// Build on devices that are quarantined or in maintenance, too
    #[arg(long)]
    force: bool,
    /// Show the builds without requesting them
    #[arg(long)]
    dry_run: bool,
    /// Wait until every build has ended (the default)
    #[arg(long, overrides_with = "no_wait")]
    wait: bool,
    /// Return at once
    #[arg(long)]
    no_wait: bool,
}

impl BuildArgs {
    fn words(&self) -> Words {
        Words {
            benchmark: self.benchmark.clone(),
            scenario: self.scenario.clone(),
            round: self.settings.round.clone(),
            engine: Some(EngineKind::Tensorrt.to_string()),
            system: self.settings.system.clone(),
            set: self.settings.set(),
            asset: self.asset.clone(),
            limit: self.limit.clone(),
            task: RunTask::EngineBuild,
            ..Words::default()
        }
    }
}

pub(super) fn run(command: &Command, context: &Context) -> CommandResult {
    let Command::Build(args) = command;
    let (workspace, store) = context.open_store()?;
    let catalogue = Catalogue::read(Some(&workspace.configs())).map_err(Failure::usage)?;
    let request = DraftRequest {
        requests: &[args.words()],
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
