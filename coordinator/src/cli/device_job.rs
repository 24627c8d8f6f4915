//! Flags and requests of runs that are not measurements: engine builds, asset fetches and searches for settings. They are queued, watched,
//! logged and aborted like other runs.

use std::collections::BTreeSet;

use regatta_catalogue::catalogue::Catalogue;
use regatta_text::HumanDuration;
use regatta_types::{EngineKind, Scenario, documents::RunTask, engine_settings::EngineBuild};

use super::{
    Context,
    run::{self, RunEnding, drafts::DraftRequest, dry_run},
    setting_flags::SettingFlags,
    target_devices::TargetDevices,
    wait::WaitFlags,
};
use crate::exit::{CommandResult, Failure};
use regatta_lab_runs::{RateRetries, RunRequestInput, vocabulary};
use regatta_lab_store::RunDraft;

/// Flags that select devices and the runs that will need the result. They are the ones of `run`.
#[derive(Debug, clap::Args)]
pub(super) struct JobArgs {
    #[command(flatten)]
    devices: TargetDevices,
    /// The benchmark
    #[arg(long)]
    benchmark: String,
    /// Scenarios, comma separated
    #[arg(long, value_parser = vocabulary::scenario(), ignore_case = true, value_delimiter = ',', required = true)]
    scenario: Vec<Scenario>,
    #[command(flatten)]
    settings: SettingFlags,
    /// An asset that the runs need in addition to the benchmark's files, such as a calibration cache
    #[arg(long, value_name = "PATH")]
    asset: Vec<String>,
    /// End the job on a device after this time, such as 2h [default: no limit]
    #[arg(long, value_name = "DURATION")]
    limit: Option<HumanDuration>,
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
    /// Returns the request of the flags for a task.
    ///
    /// # Errors
    /// Returns the failure for a setting that the engine does not accept.
    pub(super) fn input(
        &self,
        task: RunTask,
        engine: Option<EngineKind>,
    ) -> Result<RunRequestInput, Failure> {
        Ok(RunRequestInput {
            benchmark: self.benchmark.clone(),
            scenario: self.scenario.clone(),
            engine,
            asset: self.asset.clone(),
            limit: self.limit,
            task,
            ..self.settings.input(engine)?
        })
    }
}

/// Lets only the first build on each device calibrate again, because it would discard the engines of earlier builds.
pub(super) fn calibrate_once(drafts: &mut [RunDraft]) {
    let mut calibrated = BTreeSet::new();
    for draft in drafts {
        let subject = (draft.spec.device.clone(), draft.spec.benchmark.name.clone());
        let engine_build = &mut draft.spec.engine.settings.engine_build;
        if *engine_build == Some(EngineBuild::Recalibrate) && !calibrated.insert(subject) {
            *engine_build = None;
        }
    }
}

/// Requests the runs of the selected devices, and waits for them.
pub(super) fn request(args: &JobArgs, input: RunRequestInput, context: &Context) -> CommandResult {
    let (workspace, store) = context.open_store()?;
    let catalogue = Catalogue::read(Some(&workspace.configs())).map_err(Failure::usage)?;
    let request = DraftRequest {
        requests: &[input],
        plan: None,
        devices: &args.devices,
        force: args.force,
    };
    let mut drafts = request.drafts(&catalogue, &workspace, &store)?;
    calibrate_once(&mut drafts);
    if args.dry_run {
        return dry_run::show(&drafts, context, &store);
    }
    args.waiting.expect_served(context, &workspace)?;
    store.all_or_nothing(|store| drafts.iter().try_for_each(|draft| store.runs().request(draft)))?;
    let ending = RunEnding {
        waits: !args.waiting.no_wait,
        retries: RateRetries { max: 0 },
    };
    run::finish(ending, &drafts, context, &workspace, &store)
}
