//! `regatta audit run`: audits of finished runs, on the device that made them.

use regatta_catalogue::catalogue::Catalogue;
use regatta_submission_stage::audit::Test;
use regatta_text::quote_for_shell_if_needed;
use regatta_types::{ExitCode, RunId, Scenario, benchmark::Benchmark};

use super::{
    super::{
        Context,
        device_availability::expect_available_or_force,
        progress::rows,
        report::report,
        run::{RunEnding, finish},
        target_devices::TargetDevices,
        wait::{Wait, WaitFlags},
    },
    verify::verify,
    verify_args,
};
use crate::exit::{CommandResult, Failure};
use regatta_lab_runs::{
    RateRetries,
    audit::{AuditPlanError, drafts, find, of_performance},
    vocabulary,
};
use regatta_lab_store::{DeviceRow, RunDraft, Store, workspace::Workspace};
use regatta_lab_views::lookup;

/// Flags of `audit run`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The audits [default: all that the round requires of the benchmark]
    #[arg(value_name = "TEST01|TEST04|TEST05")]
    tests: Vec<String>,
    /// The performance run to audit, instead of the newest valid one of each scenario
    #[arg(long, value_name = "RUN", conflicts_with_all = ["benchmark", "scenario", "device", "device_label"])]
    performance: Option<String>,
    /// The benchmark
    #[arg(long, required_unless_present = "performance")]
    benchmark: Option<String>,
    /// Scenarios, comma separated [default: each with a valid performance run]
    #[arg(long, value_parser = vocabulary::scenario(), ignore_case = true, value_delimiter = ',')]
    scenario: Vec<Scenario>,
    #[command(flatten)]
    devices: TargetDevices,
    /// Include devices that are quarantined or in maintenance
    #[arg(long)]
    force: bool,
    /// The reference accuracy script with its arguments, for TEST01 runs whose responses differ (part III); the path of each log is
    /// appended
    #[arg(long, value_name = "COMMAND", conflicts_with = "no_wait")]
    accuracy_script: Option<String>,
    #[command(flatten)]
    waiting: WaitFlags,
}

pub(super) fn run(args: &Args, context: &Context) -> CommandResult {
    let (workspace, store) = context.open_store()?;
    let catalogue = Catalogue::read(Some(&workspace.configs())).map_err(Failure::usage)?;
    let mut requested = match (&args.performance, &args.benchmark) {
        (Some(run), _) => of_run(args, run, &catalogue, &workspace, &store)?,
        (None, benchmark) => {
            let benchmark = benchmark.as_deref().unwrap_or_default();
            let benchmark = catalogue.benchmark(benchmark).map_err(Failure::usage)?;
            let mut requested = Vec::new();
            for device in &args.devices.find_or_only(args.force, &store)? {
                requested.extend(of_device(
                    args, device, &catalogue, benchmark, context, &workspace, &store,
                )?);
            }
            requested
        }
    };
    expect_available_or_force(&mut requested, args.force, &store)?;
    args.waiting.expect_served(context, &workspace)?;
    store.all_or_nothing(|store| requested.iter().try_for_each(|draft| store.runs().request(draft)))?;
    if let Some(script) = &args.accuracy_script {
        let ids: Vec<RunId> = requested.iter().map(|draft| draft.spec.run).collect();
        return finish_with_script(&ids, script, context, (&workspace, &store));
    }
    let ending = RunEnding {
        waits: !args.waiting.no_wait,
        retries: RateRetries { max: 0 },
    };
    finish(ending, &requested, context, &workspace, &store)
}

/// Waits for audits, and compares accuracies with the reference script if responses of TEST01 differ.
fn finish_with_script(
    ids: &[RunId],
    script: &str,
    context: &Context,
    (workspace, store): (&Workspace, &Store),
) -> CommandResult {
    let wait = Wait {
        context,
        workspace,
        store,
        shows_progress: true,
        longest: None,
        is_viewer: false,
    };
    for row in wait.for_runs(ids)? {
        let audit = row.outcome.as_ref().and_then(|outcome| outcome.audit.as_ref());
        let responses = audit.and_then(|audit| audit.responses.as_ref());
        if responses.is_some_and(|responses| !responses.passed) {
            verify(&verify_args::Args::of_run(Test::Test01, row.id, script), context)?;
        }
    }
    let is_good = report(&rows(store, ids)?, &[], context)?;
    Ok(if is_good {
        ExitCode::Success
    } else {
        ExitCode::Negative
    })
}

/// Drafts the audits of one performance run.
fn of_run(
    args: &Args,
    run: &str,
    catalogue: &Catalogue,
    workspace: &Workspace,
    store: &Store,
) -> Result<Vec<RunDraft>, Failure> {
    let row = lookup::run(store, run)?;
    let failure = |error| {
        let again = |mode: &str| {
            format!(
                "measure first: regatta run --device {} --benchmark {} --scenario {} --mode {mode}",
                quote_for_shell_if_needed(row.device_name.as_deref().unwrap_or(row.device.as_str())),
                quote_for_shell_if_needed(&row.benchmark),
                row.scenario
            )
        };
        failure(error, again)
    };
    let audited = of_performance(workspace, store, row.id).map_err(failure)?;
    let round = catalogue
        .round(Some(&row.draft.spec.round))
        .map_err(Failure::usage)?;
    drafts(workspace, round, &audited, &args.tests).map_err(failure)
}

/// Drafts the audits of one device's runs.
fn of_device(
    args: &Args,
    device: &DeviceRow,
    catalogue: &Catalogue,
    benchmark: &Benchmark,
    context: &Context,
    workspace: &Workspace,
    store: &Store,
) -> Result<Vec<RunDraft>, Failure> {
    let scenarios = match args.scenario.as_slice() {
        [] => Scenario::ALL.as_slice(),
        named => named,
    };
    let hint = |scenarios: &str, mode: &str| {
        format!(
            "measure first: {}",
            context.command(&format!(
                "run --device {} --benchmark {} --scenario {scenarios} --mode {mode}",
                quote_for_shell_if_needed(&device.name),
                quote_for_shell_if_needed(&benchmark.name)
            ))
        )
    };
    let mut requested = Vec::new();
    let mut unmeasured = Vec::new();
    for &scenario in scenarios {
        let audited = match find(workspace, store, &device.id, benchmark, scenario) {
            Ok(audited) => audited,
            // Scenarios that were neither named nor run are not audited.
            Err(AuditPlanError::NoPerformanceRun { .. }) if args.scenario.is_empty() => {
                unmeasured.push(scenario.as_str());
                continue;
            }
            Err(error) => return Err(failure(error, |mode| hint(scenario.as_str(), mode))),
        };
        let round = catalogue
            .round(Some(&audited.performance.draft.spec.round))
            .map_err(Failure::usage)?;
        let drafts = drafts(workspace, round, &audited, &args.tests);
        requested.extend(drafts.map_err(|error| failure(error, |mode| hint(scenario.as_str(), mode)))?);
    }
    if !requested.is_empty() {
        return Ok(requested);
    }
    if unmeasured.is_empty() {
        return Err(Failure::misuse(format!(
            "the round requires no audit of {}",
            benchmark.name
        )));
    }
    Err(Failure::misuse(format!(
        "no scenario of {} has a valid performance run on {}",
        benchmark.name, device.name
    ))
    .hint(hint(&unmeasured.join(","), "AccuracyOnly,PerformanceOnly")))
}

fn failure(error: AuditPlanError, again: impl Fn(&str) -> String) -> Failure {
    let hint = match &error {
        AuditPlanError::NoPerformanceRun { .. } => Some(again("PerformanceOnly")),
        AuditPlanError::NoAccuracyRun { .. } => Some(again("AccuracyOnly")),
        AuditPlanError::Altered { .. } => Some(
            "run audits before truncating: put the delivered log back, or repeat the accuracy run; truncate a \
             staged tree, never a run"
                .to_owned(),
        ),
        _ => None,
    };
    Failure::of_kind(error.kind(), error).optional_hint(hint)
}
