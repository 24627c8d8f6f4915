//! `regatta device check`: makes two short known runs on a device, and clears or quarantines it by their results.

use std::{slice, time::Duration};

use regatta_catalogue::catalogue::Catalogue;
use regatta_text::HumanDuration;
use regatta_types::{EngineKind, ExitCode, Mode, RunId, Scenario, documents::RunLength};
use serde::Serialize;

use super::{
    Context,
    health_text::{described, remedy, user},
    resolve::unresolved,
    wait::Wait,
};
use crate::exit::{CommandResult, Failure};
use regatta_lab_net::fleet::health_check_engine;
use regatta_lab_runs::{CheckVerdict, KnownRequest, RunFiles, judge_check, speed, vocabulary};
use regatta_lab_store::{
    DeviceCheck, DeviceRow, HealthChange, RunDraft, RunRequest, RunRow, Store, workspace::Workspace,
};
use regatta_lab_views::{documents::HealthDocument, lookup};

/// The length of the performance run in milliseconds.
const DURATION_MS: u64 = 5_000;

/// Flags of `device check`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The device's name or id [default: the only device]
    device: Option<String>,
    /// The benchmark (see `benchmark list`)
    #[arg(long, default_value = KnownRuns::USUAL.benchmark)]
    benchmark: String,
    /// The engine [default: the best that the device has: tensorrt, else tract; null on a device with neither, which does not check
    /// answers]
    #[arg(long, value_parser = vocabulary::engine(), ignore_case = true)]
    engine: Option<EngineKind>,
    /// How long to wait for the two runs [default: 10m]
    #[arg(long, value_name = "DURATION")]
    timeout: Option<HumanDuration>,
}

/// The known runs of a check.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownRuns<'a> {
    benchmark: &'a str,
    /// `None` selects the engine of each device's health check.
    engine: Option<EngineKind>,
    /// The longest wait for them.
    longest: Duration,
}

impl KnownRuns<'static> {
    /// The built-in benchmark on the default engine.
    pub(super) const USUAL: Self = Self {
        benchmark: "digits",
        engine: None,
        longest: Duration::from_secs(600),
    };
}

/// The check of one device.
pub(super) struct CheckedDevice {
    pub(super) verdict: CheckVerdict,
    accuracy: RunRow,
    performance: RunRow,
}

/// A check as a JSON document.
#[derive(Serialize)]
struct CheckDocument<'a> {
    verdict: &'static str,
    reason: &'a str,
    accuracy: Option<f64>,
    samples_per_second: Option<f64>,
    runs: [String; 2],
    health: HealthDocument<'a>,
}

pub(super) fn run(args: &Args, context: &Context, workspace: &Workspace, store: &Store) -> CommandResult {
    let device = lookup::device(store, args.device.as_deref())?;
    expect_checkable(&device, context, workspace)?;
    let wait = Wait {
        context,
        workspace,
        store,
        shows_progress: true,
        longest: None,
        is_viewer: false,
    };
    let usual = KnownRuns::USUAL.longest;
    let runs = KnownRuns {
        benchmark: &args.benchmark,
        engine: args.engine,
        longest: args
            .timeout
            .map_or(usual, |timeout| Duration::from_millis(timeout.millis())),
    };
    let checked = check(runs, slice::from_ref(&device), wait)?;
    let Some(checked) = checked.first() else {
        return Err(Failure::could_not(
            "the runs of the check are no longer in the database",
        ));
    };
    print(checked, &device, context, store)
}

/// Makes the known runs on every device at the same time, and stores the verdicts in the devices' health. Returns them in the devices' order.
///
/// # Errors
/// Returns an error when a run cannot be requested, has not ended in time, or the store fails.
pub(super) fn check(
    runs: KnownRuns<'_>,
    devices: &[DeviceRow],
    wait: Wait<'_>,
) -> Result<Vec<CheckedDevice>, Failure> {
    let (workspace, store) = (wait.workspace, wait.store);
    let catalogue = Catalogue::read(Some(&workspace.configs())).map_err(Failure::usage)?;
    let benchmark = catalogue.benchmark(runs.benchmark).map_err(Failure::usage)?;
    let mut drafts_of_all = Vec::new();
    for device in devices {
        drafts_of_all.extend(drafts(runs, device, &catalogue, workspace, store)?);
    }
    let ids: Vec<_> = drafts_of_all.iter().map(|draft| draft.spec.run).collect();
    store.all_or_nothing(|store| {
        drafts_of_all
            .iter()
            .try_for_each(|draft| store.runs().request(draft))
    })?;
    let wait = Wait {
        longest: Some(runs.longest),
        ..wait
    };
    let rows = match wait.for_runs(&ids) {
        Err(failure) if devices.len() == 1 => return Err(failure),
        // One device does not decide for the others: what has not ended is undecided.
        Err(_) => abandoned(&ids, store)?,
        Ok(rows) => rows,
    };
    let mut rows = rows.into_iter();
    let mut checked = Vec::with_capacity(devices.len());
    for device in devices {
        let (Some(accuracy), Some(performance)) = (rows.next(), rows.next()) else {
            break;
        };
        let engine = accuracy.draft.spec.engine.kind;
        let earlier = store
            .device_checks()
            .speeds(&device.id, &benchmark.name, engine.as_str())?;
        let verdict = judge_check(&accuracy, &performance, benchmark, &earlier);
        let done = CheckedDevice {
            verdict,
            accuracy,
            performance,
        };
        done.keep(device, store)?;
        checked.push(done);
    }
    Ok(checked)
}

/// Requests the end of runs that took too long. Returns all of them.
fn abandoned(ids: &[RunId], store: &Store) -> Result<Vec<RunRow>, Failure> {
    let mut rows = Vec::with_capacity(ids.len());
    for id in ids {
        let run = store.runs().get(*id)?;
        let run =
            run.ok_or_else(|| Failure::could_not("the runs of the check are no longer in the database"))?;
        if !run.is_over() {
            store
                .runs()
                .request_abort(*id, "the check of its device took too long")?;
        }
        rows.push(run);
    }
    Ok(rows)
}

/// Checks that the runs of a check can begin.
fn expect_checkable(device: &DeviceRow, context: &Context, workspace: &Workspace) -> Result<(), Failure> {
    if !workspace.is_served() {
        return Err(
            Failure::could_not(format!("no coordinator serves {}", workspace.root().display()))
                .hint(format!("start it: {}", context.command("serve"))),
        );
    }
    if device.duplicated {
        return Err(
            Failure::could_not(format!("two agents use the identity of {}", device.name)).hint(
                "stop one of them; `regatta-agent enroll --new-identity TOKEN` gives the copy a new key",
            ),
        );
    }
    if !device.online {
        return Err(Failure::could_not(format!("{} is offline", device.name))
            .hint("start `regatta-agent serve` on it"));
    }
    Ok(())
}

fn drafts(
    runs: KnownRuns<'_>,
    device: &DeviceRow,
    catalogue: &Catalogue,
    workspace: &Workspace,
    store: &Store,
) -> Result<Vec<RunDraft>, Failure> {
    let files = RunFiles::read(workspace, store)?;
    let mut request = RunRequest::new(runs.benchmark, Scenario::SingleStream);
    request.engine.kind = Some(runs.engine.unwrap_or_else(|| health_check_engine(device)));
    request.length = RunLength::Duration(DURATION_MS);
    let mut drafts = Vec::new();
    for mode in [Mode::AccuracyOnly, Mode::PerformanceOnly] {
        request.mode = mode;
        let known = KnownRequest::find(&request, catalogue).map_err(unresolved)?;
        let mut draft = known.draft_with_files(device, &files).map_err(unresolved)?;
        draft.forced = true;
        drafts.push(draft);
    }
    Ok(drafts)
}

impl CheckedDevice {
    /// Stores the check and changes the device's health, unless the check shows nothing.
    fn keep(&self, device: &DeviceRow, store: &Store) -> Result<(), Failure> {
        let (change, failure) = match &self.verdict {
            CheckVerdict::Passed(_) => (HealthChange::CheckPassed, None),
            CheckVerdict::Failed(reason) => (HealthChange::CheckFailed(reason), Some(reason.clone())),
            CheckVerdict::Undecided(_) => return Ok(()),
        };
        let check = DeviceCheck {
            benchmark: self.accuracy.benchmark.clone(),
            engine: self.accuracy.draft.spec.engine.kind.to_string(),
            accuracy_run: self.accuracy.id,
            performance_run: self.performance.id,
            accuracy: accuracy_of(&self.accuracy),
            samples_per_second: speed(&self.performance),
            failure,
            by: user(),
        };
        store.all_or_nothing(|store| {
            store.device_checks().add(&device.id, &check)?;
            store.health().change(&device.id, change, &check.by)
        })?;
        Ok(())
    }
}

fn accuracy_of(run: &RunRow) -> Option<f64> {
    Some(run.outcome.as_ref()?.accuracy.as_ref()?.value)
}

fn print(checked: &CheckedDevice, before: &DeviceRow, context: &Context, store: &Store) -> CommandResult {
    let CheckedDevice {
        verdict,
        accuracy,
        performance,
    } = checked;
    let after = lookup::device(store, Some(before.id.as_str()))?;
    let name = &after.name;
    let (word, reason, code) = match verdict {
        CheckVerdict::Passed(shown) => ("passed", shown, ExitCode::Success),
        CheckVerdict::Failed(reason) => ("failed", reason, ExitCode::Negative),
        CheckVerdict::Undecided(reason) => ("undecided", reason, ExitCode::Failed),
    };
    let document = CheckDocument {
        verdict: word,
        reason,
        accuracy: accuracy_of(accuracy),
        samples_per_second: speed(performance),
        runs: [accuracy.id.to_string(), performance.id.to_string()],
        health: HealthDocument::of(&after),
    };
    context.print(&document, || {
        let mut text = format!("{name}: check {word}: {reason}\n");
        if after.health.health() != before.health.health() {
            text.push_str(&format!("it was {}\n", described(&before.health)));
        }
        text.push_str(&format!("it is {}", described(&after.health)));
        if !after.health.can_take_runs() {
            text.push_str(&format!("\n{}", remedy(&after)));
        }
        text
    })?;
    Ok(code)
}
