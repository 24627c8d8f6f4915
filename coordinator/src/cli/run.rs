//! `regatta run`: requests runs of devices and waits for them.

pub(super) mod drafts;
pub(super) mod dry_run;

use std::{mem, path::PathBuf};

use anyhow::Context as _;
use regatta_config::catalogue::Catalogue;
use regatta_fsutil::regular_file;
use regatta_types::{RunId, documents::RunTask};

use super::{
    Context,
    context::tell,
    progress::rows,
    report::report,
    setting_flags::{SettingFlags, pair},
    target_devices::TargetDevices,
    wait::{Wait, WaitFlags},
};
use crate::{
    exit::{self, CommandResult, Failure},
    tables,
};
use drafts::DraftRequest;
use regatta_lab_runs::{GateWords, Plan, StateWords, Words, repetitions};
use regatta_lab_store::{RunDraft, Store, workspace::Workspace};
use regatta_lab_views::{documents::run_document, wording};

/// Flags of `run`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  regatta run --benchmark digits --scenario Offline --test-run
      one run of 60 s on the only device
  regatta run --device all --benchmark digits --scenario SingleStream,Offline --mode AccuracyOnly,PerformanceOnly
      every device, each scenario in both modes
  regatta run --device boat-1 --benchmark resnet50 --scenario Offline --engine tensorrt --set gpu_batch_size=16 --state MaxP
      with an engine setting, at the highest clocks
  regatta run --device boat-1 --benchmark digits --scenario Server --conf target_qps=500 --repeat 3 --no-wait
      three runs at a given rate; `regatta runs watch` shows them
  regatta run plan.toml --dry-run
      what a file of requests would queue")]
pub(super) struct Args {
    /// A plan: several requests in one file
    #[arg(value_name = "PLAN.toml", conflicts_with_all = ["benchmark", "scenario", "mode"])]
    plan: Option<PathBuf>,
    #[command(flatten)]
    devices: TargetDevices,
    /// The benchmark: digits, which is built in, or one of configs/benchmarks in the workspace
    #[arg(long, required_unless_present = "plan")]
    benchmark: Option<String>,
    /// Scenarios, comma separated: SingleStream, MultiStream, Server, Offline
    #[arg(long, value_delimiter = ',', required_unless_present = "plan")]
    scenario: Vec<String>,
    /// Modes, comma separated: AccuracyOnly, PerformanceOnly, SubmissionRun, FindPeakPerformance [default: PerformanceOnly]
    #[arg(long, value_delimiter = ',')]
    mode: Vec<String>,
    #[command(flatten)]
    settings: SettingFlags,
    /// The engine: null, tract, tensorrt or sim [default: tract]
    #[arg(long)]
    engine: Option<String>,
    /// 60 s per run
    #[arg(long, conflicts_with = "duration")]
    test_run: bool,
    /// Another length, such as 3s
    #[arg(long, value_name = "T")]
    duration: Option<String>,
    /// Which LoadGen: native, official or official:REVISION [default: native]
    #[arg(long)]
    loadgen: Option<String>,
    /// A line of user.conf, KEY=VALUE or MODEL.SCENARIO.KEY=VALUE
    #[arg(long, value_name = "K=V", value_parser = pair)]
    conf: Vec<(String, String)>,
    /// The state that the device is set to for the run: MaxP, MaxQ or as-is; a plan may name single clocks [default: as-is]
    #[arg(long, value_name = "STATE")]
    state: Option<String>,
    /// How long a device may have a run before the coordinator ends it, such as 2h, without its wait for the gate [default: no
    /// limit]
    #[arg(long, value_name = "T")]
    limit: Option<String>,
    #[command(flatten)]
    gate: GateFlags,
    /// An asset that the run needs beside its benchmark's files, such as a calibration cache
    #[arg(long, value_name = "PATH")]
    asset: Vec<String>,
    /// When logs leave the device: after the run, or live. Accuracy runs of 1,000 samples or more are live by default, and end early if their
    /// first 500 answers are below half of the target; `after` lets them continue [default: after]
    #[arg(long)]
    stream: Option<String>,
    /// How often every run is requested
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeat: u16,
    /// How often a run that is INVALID because its rate was a guess is repeated at the measured rate, while waiting
    #[arg(long, value_name = "N", default_value_t = 2)]
    retry: u32,
    /// Request runs of devices that are quarantined or in maintenance, too
    #[arg(long)]
    force: bool,
    /// Show the runs without requesting them
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    waiting: WaitFlags,
}

/// What must hold on the device before a run starts.
#[derive(Debug, clap::Args)]
struct GateFlags {
    /// The highest temperature with which the run starts, such as 60C; the device waits until it has cooled down
    #[arg(long, value_name = "T")]
    max_temperature: Option<String>,
    /// The least available memory with which it starts, such as 2GiB
    #[arg(long, value_name = "SIZE")]
    min_memory: Option<String>,
    /// The least free disk with which it starts, such as 4GiB
    #[arg(long, value_name = "SIZE")]
    min_disk: Option<String>,
    /// How long the device waits for these before the run fails [default: 10m]
    #[arg(long, value_name = "T")]
    gate_wait: Option<String>,
}

impl GateFlags {
    /// Returns the gate of these flags, or `None` without any.
    fn words(&self) -> Option<GateWords> {
        let words = GateWords {
            max_temperature: self.max_temperature.clone(),
            min_memory: self.min_memory.clone(),
            min_disk: self.min_disk.clone(),
            wait: self.gate_wait.clone(),
        };
        (words != GateWords::default()).then_some(words)
    }
}

/// The hint for a plan that cannot be read, such as the `list` of `regatta run list`.
const WITHOUT_A_PLAN: &str =
    "a run without a plan: `regatta run --benchmark NAME --scenario NAME`; earlier runs: `regatta runs list`";

impl Args {
    /// Applies the command line's length, state, limit and gate, which are meant for every run of a plan.
    fn change(&self, words: &mut Words) {
        if let Some(state) = &self.state {
            words.state = Some(StateWords::Preset(state.clone()));
        }
        if self.test_run || self.duration.is_some() {
            words.test_run = self.test_run;
            words.duration.clone_from(&self.duration);
        }
        if self.limit.is_some() {
            words.limit.clone_from(&self.limit);
        }
        if let Some(gate) = self.gate.words() {
            words.gate = Some(words.gate.take().unwrap_or_default().overridden_by(&gate));
        }
    }

    fn words(&self) -> Words {
        Words {
            device: None,
            benchmark: self.benchmark.clone().unwrap_or_default(),
            scenario: self.scenario.clone(),
            mode: self.mode.clone(),
            round: self.settings.round.clone(),
            engine: self.engine.clone(),
            loadgen: self.loadgen.clone(),
            test_run: self.test_run,
            duration: self.duration.clone(),
            stream: self.stream.clone(),
            system: self.settings.system.clone(),
            set: self.settings.set(),
            conf: self.conf.iter().cloned().collect(),
            state: self.state.clone().map(StateWords::Preset),
            asset: self.asset.clone(),
            gate: self.gate.words(),
            limit: self.limit.clone(),
            task: RunTask::Measurement,
        }
    }
}

pub(super) fn run(args: &Args, context: &Context) -> CommandResult {
    let (workspace, store) = context.open_store()?;
    let catalogue = Catalogue::read(Some(&workspace.configs())).map_err(Failure::usage)?;
    let requests = match &args.plan {
        None => vec![args.words()],
        Some(path) => {
            let text = regular_file::read_text(path)
                .with_context(|| format!("cannot read the plan {}", path.display()))
                .map_err(|error| Failure::usage(error).hint(WITHOUT_A_PLAN))?;
            let plan = Plan::from_toml(&text).with_context(|| path.display().to_string());
            let mut requests = plan.map_err(Failure::usage)?.run;
            requests.iter_mut().for_each(|words| args.change(words));
            requests
        }
    };
    let request = DraftRequest {
        requests: &requests,
        plan: args.plan.as_deref(),
        devices: &args.devices,
        force: args.force,
    };
    let mut drafts = request.drafts(&catalogue, &workspace, &store)?;
    let once = drafts.clone();
    for _ in 1..args.repeat {
        drafts.extend(once.iter().map(RunDraft::repeated));
    }
    if args.dry_run {
        return dry_run::show(&drafts, context, &store);
    }
    args.waiting.expect_served(context, &workspace)?;
    // Either all runs are requested, or none.
    store.all_or_nothing(|store| drafts.iter().try_for_each(|draft| store.request_run(draft)))?;
    finish(
        (args.waiting.no_wait, args.retry),
        &drafts,
        context,
        &workspace,
        &store,
    )
}

/// Reports requested runs, and waits for them unless the user does not want that. INVALID runs are repeated up to `retries` times if
/// their rate was a guess.
pub(super) fn finish(
    (no_wait, retries): (bool, u32),
    drafts: &[RunDraft],
    context: &Context,
    workspace: &Workspace,
    store: &Store,
) -> CommandResult {
    let mut ids: Vec<RunId> = drafts.iter().map(|draft| draft.spec.run).collect();
    if no_wait {
        if !workspace.is_served() {
            tell(&format!(
                "no coordinator serves this workspace; start it: {}",
                context.command("serve")
            ));
        }
        let rows = rows(store, &ids)?;
        let documents: Vec<_> = rows.iter().map(run_document).collect();
        context.print(&serde_json::json!({ "runs": documents }), || tables::runs(&rows))?;
        return Ok(exit::OK);
    }
    let wait = Wait {
        context,
        workspace,
        store,
        shows_progress: true,
        longest: None,
    };
    let mut rows = wait.for_runs(&ids)?;
    let mut replaced = Vec::new();
    for _ in 0..retries {
        let repeated = repetitions(&rows, workspace, store)?;
        if repeated.is_empty() {
            break;
        }
        for (place, _) in &repeated {
            if let Some(row) = rows.get(*place) {
                tell(&wording::why_repeated(row));
            }
        }
        store.all_or_nothing(|store| {
            repeated
                .iter()
                .try_for_each(|(_, draft)| store.request_run(draft))
        })?;
        ids = repeated.iter().map(|(_, draft)| draft.spec.run).collect();
        for ((place, _), newer) in repeated.iter().zip(wait.for_runs(&ids)?) {
            if let Some(row) = rows.get_mut(*place) {
                replaced.push(mem::replace(row, newer));
            }
        }
    }
    let is_good = report(&rows, &replaced, context)?;
    Ok(if is_good { exit::OK } else { exit::NO })
}
