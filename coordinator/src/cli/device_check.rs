//! `regatta device check`: makes two short known runs on a device, and clears or quarantines it by their results.

use std::time::Duration;

use regatta_config::catalogue::Catalogue;
use regatta_text::HumanDuration;
use serde::Serialize;

use super::{
    Context,
    health_text::{described, remedy, user},
    resolve::{resolve, unresolved},
    wait::Wait,
};
use crate::{
    documents::HealthDocument,
    exit::{self, CommandResult, Failure},
    lookup,
    runs::{CheckVerdict, RunFiles, Words, judge_check, speed},
    store::{DeviceCheck, DeviceRow, HealthChange, RunDraft, RunRow, Store},
    workspace::Workspace,
};

/// The length of the performance run.
const DURATION: &str = "5s";

/// Flags of `device check`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Its name or id [default: the only device]
    device: Option<String>,
    /// The benchmark: digits, which is built in, or one of configs/benchmarks in the workspace
    #[arg(long, default_value = "digits")]
    benchmark: String,
    /// The engine: tract or tensorrt
    #[arg(long, default_value = "tract")]
    engine: String,
    /// How long to wait for the two runs
    #[arg(long, value_name = "T", default_value = "10m")]
    timeout: HumanDuration,
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
    let catalogue = Catalogue::read(Some(&workspace.configs())).map_err(Failure::usage)?;
    let benchmark = catalogue.benchmark(&args.benchmark).map_err(Failure::usage)?;
    let drafts = drafts(args, &device, &catalogue, workspace, store)?;
    let ids: Vec<_> = drafts.iter().map(|draft| draft.spec.run).collect();
    store.all_or_nothing(|store| drafts.iter().try_for_each(|draft| store.add_run(draft)))?;
    let wait = Wait {
        context,
        workspace,
        store,
        shows_progress: true,
        longest: Some(Duration::from_millis(args.timeout.millis())),
    };
    let rows = wait.for_runs(&ids)?;
    let [accuracy, performance] = rows.as_slice() else {
        return Err(Failure::could_not(
            "the runs of the check are no longer in the store",
        ));
    };
    let earlier = store.checked_speeds(&device.id, &benchmark.name, &args.engine)?;
    let verdict = judge_check(accuracy, performance, benchmark, &earlier);
    keep(&verdict, (accuracy, performance), &device, store)?;
    print(&verdict, (accuracy, performance), &device, context, store)
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
            Failure::could_not(format!("two agents use the identity of {}", device.name))
                .hint("stop one of them, and delete `device.key` and `enrolment.json` of the copy"),
        );
    }
    if !device.online {
        return Err(Failure::could_not(format!("{} is offline", device.name))
            .hint("start `regatta-agent serve` on it"));
    }
    Ok(())
}

fn drafts(
    args: &Args,
    device: &DeviceRow,
    catalogue: &Catalogue,
    workspace: &Workspace,
    store: &Store,
) -> Result<Vec<RunDraft>, Failure> {
    let words = Words {
        device: Some(device.id.to_string()),
        benchmark: args.benchmark.clone(),
        scenario: vec!["SingleStream".to_owned()],
        mode: vec!["AccuracyOnly".to_owned(), "PerformanceOnly".to_owned()],
        engine: Some(args.engine.clone()),
        duration: Some(DURATION.to_owned()),
        ..Words::default()
    };
    let mut drafts = resolve(&words, catalogue, store)?;
    let files = RunFiles::read(workspace, store)?;
    for draft in &mut drafts {
        files.add_to(draft, &[]).map_err(unresolved)?;
        draft.forced = true;
    }
    Ok(drafts)
}

/// Stores the check and changes the device's health, unless the check shows nothing.
fn keep(
    verdict: &CheckVerdict,
    (accuracy, performance): (&RunRow, &RunRow),
    device: &DeviceRow,
    store: &Store,
) -> Result<(), Failure> {
    let (change, failure) = match verdict {
        CheckVerdict::Passed(_) => (HealthChange::CheckPassed, None),
        CheckVerdict::Failed(reason) => (HealthChange::CheckFailed(reason), Some(reason.clone())),
        CheckVerdict::Undecided(_) => return Ok(()),
    };
    let check = DeviceCheck {
        benchmark: accuracy.benchmark.clone(),
        engine: accuracy.draft.spec.engine.kind.to_string(),
        accuracy_run: accuracy.id,
        performance_run: performance.id,
        accuracy: accuracy_of(accuracy),
        samples_per_second: speed(performance),
        failure,
        by: user(),
    };
    store.all_or_nothing(|store| {
        store.add_device_check(&device.id, &check)?;
        store.change_health(&device.id, change, &check.by)
    })?;
    Ok(())
}

fn accuracy_of(run: &RunRow) -> Option<f64> {
    Some(run.outcome.as_ref()?.accuracy.as_ref()?.value)
}

fn print(
    verdict: &CheckVerdict,
    (accuracy, performance): (&RunRow, &RunRow),
    before: &DeviceRow,
    context: &Context,
    store: &Store,
) -> CommandResult {
    let after = lookup::device(store, Some(before.id.as_str()))?;
    let name = &after.name;
    let (word, reason, code) = match verdict {
        CheckVerdict::Passed(shown) => ("passed", shown, exit::OK),
        CheckVerdict::Failed(reason) => ("failed", reason, exit::NO),
        CheckVerdict::Undecided(reason) => ("undecided", reason, exit::COULD_NOT),
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
