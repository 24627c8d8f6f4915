//! `regatta run`: requests runs of devices and waits for them.

pub(super) mod drafts;
pub(super) mod dry_run;
mod submission;

use std::path::PathBuf;

use anyhow::Context as _;
use regatta_catalogue::catalogue::Catalogue;
use regatta_fsutil::regular_file;
use regatta_text::HumanDuration;
use regatta_types::{
    EngineKind, ExitCode, Mode, RunId, Scenario,
    documents::{Delivery, LoadgenChoice, RunTask},
    engine_settings::EngineBuild,
};

use super::{
    Context,
    context::tell,
    progress::rows,
    report::report,
    setting_flags::{Assignment, SettingFlags, assignment},
    target_devices::TargetDevices,
    wait::{Wait, WaitFlags},
};
use crate::{
    exit::{CommandResult, Failure},
    tables,
};
use drafts::DraftRequest;
use regatta_lab_runs::{
    GateInput, GateSize, GateTemperature, Plan, RateRetries, RunRequestInput, vocabulary,
};
use regatta_lab_store::{RunDraft, RunRow, StatePreset, Store, workspace::Workspace};
use regatta_lab_views::{documents::run_document, wording};
use submission::SubmissionFlags;

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
  regatta run --device boat-1 --benchmark resnet50 --submission
      all that a submission of the newest round needs: accuracy, performance and audits of every scenario
  regatta run plan.toml --dry-run
      what a file of requests would queue")]
pub(super) struct Args {
    /// A plan: several requests in one file
    #[arg(value_name = "PLAN.toml", conflicts_with_all = ["benchmark", "scenario", "mode"])]
    plan: Option<PathBuf>,
    #[command(flatten)]
    submission: SubmissionFlags,
    #[command(flatten)]
    devices: TargetDevices,
    /// Benchmarks, comma separated (see `benchmark list`)
    #[arg(long, value_delimiter = ',', required_unless_present = "plan")]
    benchmark: Vec<String>,
    /// Scenarios, comma separated [default with --submission: all that the round requires]
    #[arg(long, value_parser = vocabulary::scenario(), ignore_case = true, value_delimiter = ',', required_unless_present_any = ["plan", "submission"])]
    scenario: Vec<Scenario>,
    /// Modes, comma separated [default: PerformanceOnly]
    #[arg(long, value_parser = vocabulary::mode(), ignore_case = true, value_delimiter = ',')]
    mode: Vec<Mode>,
    #[command(flatten)]
    settings: SettingFlags,
    /// The engine [default: the best that each device has: tensorrt, else tract]
    #[arg(long, value_parser = vocabulary::engine(), ignore_case = true)]
    engine: Option<EngineKind>,
    /// Run for 60 s each, not at full length
    #[arg(long, conflicts_with = "duration")]
    test_run: bool,
    /// Run for this long each, such as 3s
    #[arg(long, value_name = "DURATION")]
    duration: Option<HumanDuration>,
    /// Which LoadGen: native, official or official:REVISION [default: native]
    #[arg(long)]
    loadgen: Option<LoadgenChoice>,
    /// A line of user.conf, KEY=VALUE or MODEL.SCENARIO.KEY=VALUE
    #[arg(long, value_name = "KEY=VALUE", value_parser = assignment)]
    conf: Vec<Assignment>,
    /// The state that the device is set to for the run; a plan may name single clocks [default: as-is]
    #[arg(long, value_name = "STATE", value_parser = vocabulary::state(), ignore_case = true)]
    state: Option<StatePreset>,
    /// How long a device may have a run before the coordinator ends it, such as 2h, without its wait for the gate [default: no
    /// limit]
    #[arg(long, value_name = "DURATION")]
    limit: Option<HumanDuration>,
    #[command(flatten)]
    gate: GateFlags,
    /// An asset that the run needs beside its benchmark's files, such as a calibration cache
    #[arg(long, value_name = "PATH")]
    asset: Vec<String>,
    /// When logs leave the device: after the run, or live. Accuracy runs of 1,000 samples or more are live by default, and end early if their
    /// first 500 answers are below half of the target; `after` lets them continue [default: after]
    #[arg(long, value_parser = vocabulary::delivery())]
    stream: Option<Delivery>,
    /// Calibrate INT8 again first, although the devices have scales and engines of the same samples
    #[arg(long, conflicts_with = "plan")]
    force_calibration: bool,
    /// Number of times to run each combination
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeat: u16,
    /// Retries at the measured rate when an estimated rate made the run INVALID (needs waiting)
    #[arg(long, value_name = "N", default_value_t = RateRetries::default().max)]
    retry: u64,
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
    #[arg(long, value_name = "TEMPERATURE")]
    max_temperature: Option<GateTemperature>,
    /// The least available memory with which it starts, such as 2GiB
    #[arg(long, value_name = "SIZE")]
    min_memory: Option<GateSize>,
    /// The least free disk with which it starts, such as 4GiB
    #[arg(long, value_name = "SIZE")]
    min_disk: Option<GateSize>,
    /// How long the device waits for these before the run fails [default: 10m]
    #[arg(long, value_name = "DURATION")]
    gate_wait: Option<HumanDuration>,
}

impl GateFlags {
    /// Returns the gate of these flags, or `None` without any.
    fn gate(&self) -> Option<GateInput> {
        let gate = GateInput {
            max_temperature: self.max_temperature,
            min_memory: self.min_memory,
            min_disk: self.min_disk,
            wait: self.gate_wait,
        };
        (gate != GateInput::default()).then_some(gate)
    }
}

/// The hint for a plan that cannot be read, such as the `list` of `regatta run list`.
const WITHOUT_A_PLAN: &str =
    "a run without a plan: `regatta run --benchmark NAME --scenario NAME`; earlier runs: `regatta runs list`";

impl Args {
    /// Applies the command line's length, state, limit and gate, which are meant for every run of a plan.
    fn change(&self, input: &mut RunRequestInput) {
        if let Some(preset) = self.state {
            input.state = Some(preset.into());
        }
        if self.test_run || self.duration.is_some() {
            input.test_run = self.test_run;
            input.duration = self.duration;
        }
        input.limit = self.limit.or(input.limit);
        if let Some(gate) = self.gate.gate() {
            input.gate = Some(input.gate.unwrap_or_default().overridden_by(gate));
        }
    }

    /// Returns one request per benchmark from the options, for a command without a plan.
    fn inputs(&self) -> Result<Vec<RunRequestInput>, Failure> {
        let inputs = self.benchmark.iter().map(|benchmark| self.input(benchmark));
        inputs.collect()
    }

    fn input(&self, benchmark: &str) -> Result<RunRequestInput, Failure> {
        let mut input = RunRequestInput {
            benchmark: benchmark.to_owned(),
            scenario: self.scenario.clone(),
            mode: self.mode.clone(),
            engine: self.engine,
            loadgen: self.loadgen.clone(),
            stream: self.stream,
            conf: self.conf.iter().cloned().map(Assignment::into_pair).collect(),
            asset: self.asset.clone(),
            ..self.settings.input(self.engine)?
        };
        self.change(&mut input);
        Ok(input)
    }
}

/// Adds a request before those of each benchmark: a build that calibrates again. Later runs build what else they need, with the new scales.
fn with_calibrations(requests: Vec<RunRequestInput>) -> Vec<RunRequestInput> {
    let calibration = |input: &RunRequestInput| {
        let mut build = RunRequestInput {
            benchmark: input.benchmark.clone(),
            scenario: input.scenario.iter().copied().take(1).collect(),
            round: input.round.clone(),
            engine: input.engine,
            system: input.system.clone(),
            set: input.set.clone(),
            asset: input.asset.clone(),
            limit: input.limit,
            task: RunTask::EngineBuild,
            ..RunRequestInput::default()
        };
        build.set.engine_build = Some(EngineBuild::Recalibrate);
        build
    };
    let builds: Vec<_> = requests.iter().map(calibration).collect();
    builds.into_iter().chain(requests).collect()
}

pub(super) fn run(args: &Args, context: &Context) -> CommandResult {
    if args.submission.submission {
        return submission::run(args, context);
    }
    let (workspace, store) = context.open_store()?;
    let catalogue = Catalogue::read(Some(&workspace.configs())).map_err(Failure::usage)?;
    let requests = match &args.plan {
        None => args.inputs()?,
        Some(path) => {
            let text = regular_file::read_text(path)
                .with_context(|| format!("cannot read the plan {}", path.display()))
                .map_err(|error| Failure::usage(error).hint(WITHOUT_A_PLAN))?;
            let plan = Plan::from_toml(&text).map_err(|error| {
                let hint = error.hint();
                Failure::usage(error).context(path.display()).optional_hint(hint)
            });
            let mut requests = plan?.run;
            requests.iter_mut().for_each(|input| args.change(input));
            requests
        }
    };
    let requests = match args.force_calibration {
        true => with_calibrations(requests),
        false => requests,
    };
    let request = DraftRequest {
        requests: &requests,
        plan: args.plan.as_deref(),
        devices: &args.devices,
        force: args.force,
    };
    let mut drafts = request.drafts(&catalogue, &workspace, &store)?;
    let calibrates_again =
        |draft: &&RunDraft| draft.spec.engine.settings.engine_build == Some(EngineBuild::Recalibrate);
    let once: Vec<RunDraft> = drafts
        .iter()
        .filter(|draft| !calibrates_again(draft))
        .cloned()
        .collect();
    for _ in 1..args.repeat {
        drafts.extend(once.iter().map(RunDraft::repeated));
    }
    if args.dry_run {
        return dry_run::show(&drafts, context, &store);
    }
    args.waiting.expect_served(context, &workspace)?;
    // Either all runs are requested, or none.
    store.all_or_nothing(|store| drafts.iter().try_for_each(|draft| store.runs().request(draft)))?;
    let ending = RunEnding {
        waits: !args.waiting.no_wait,
        retries: RateRetries { max: args.retry },
    };
    finish(ending, &drafts, context, &workspace, &store)
}

/// What a command does with the runs that it requested.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunEnding {
    /// Whether it waits for them.
    pub(super) waits: bool,
    /// How often it repeats runs whose rate was a guess, while it waits.
    pub(super) retries: RateRetries,
}

/// Reports requested runs, after they are over if the command waits for them.
pub(super) fn finish(
    ending: RunEnding,
    drafts: &[RunDraft],
    context: &Context,
    workspace: &Workspace,
    store: &Store,
) -> CommandResult {
    let ids: Vec<RunId> = drafts.iter().map(|draft| draft.spec.run).collect();
    if !ending.waits {
        if !workspace.is_served() {
            tell(&format!(
                "no coordinator serves this workspace; start it: {}",
                context.command("serve")
            ));
        }
        let rows = rows(store, &ids)?;
        let documents: Vec<_> = rows.iter().map(run_document).collect();
        context.print(&serde_json::json!({ "runs": documents }), || tables::runs(&rows))?;
        return Ok(ExitCode::Success);
    }
    let wait = Wait {
        context,
        workspace,
        store,
        shows_progress: true,
        longest: None,
        is_viewer: false,
    };
    let mut rows = wait.for_runs(&ids)?;
    let repeat = |invalid: &[&RunRow], drafts: &[RunDraft]| {
        for row in invalid {
            tell(&wording::why_repeated(row));
        }
        store.all_or_nothing(|store| drafts.iter().try_for_each(|draft| store.runs().request(draft)))?;
        let ids: Vec<RunId> = drafts.iter().map(|draft| draft.spec.run).collect();
        wait.for_runs(&ids)
    };
    let replaced = ending.retries.repeat(&mut rows, workspace, store, repeat)?;
    let is_good = report(&rows, &replaced, context)?;
    Ok(if is_good {
        ExitCode::Success
    } else {
        ExitCode::Negative
    })
}
