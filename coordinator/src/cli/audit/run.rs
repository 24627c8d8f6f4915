//! `regatta audit run`: audits of finished runs, on the device that made them.

use regatta_types::Scenario;

use super::super::{Context, lookup, run::finish};
use crate::{
    exit::{CommandResult, Failure},
    runs::{
        Catalogue,
        audit::{PlanError, drafts, find},
    },
};

/// Flags of `audit run`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The audits [default: all that the round asks of the benchmark]
    #[arg(value_name = "TEST01|TEST04|TEST05")]
    tests: Vec<String>,
    /// The benchmark
    #[arg(long)]
    benchmark: String,
    /// Scenarios, comma separated [default: each that has a valid performance run]
    #[arg(long, value_delimiter = ',')]
    scenario: Vec<Scenario>,
    /// The device's name or id; the only one, when there is one
    #[arg(long)]
    device: Option<String>,
    /// Wait until every audit has ended; this is what happens by itself
    #[arg(long, overrides_with = "no_wait")]
    wait: bool,
    /// Return at once
    #[arg(long)]
    no_wait: bool,
}

pub(super) fn run(args: &Args, context: &Context) -> CommandResult {
    let (workspace, store) = context.open_store()?;
    let catalogue = Catalogue::read(Some(&workspace)).map_err(Failure::usage)?;
    let benchmark = catalogue.benchmark(&args.benchmark).map_err(Failure::usage)?;
    let device = lookup::device(&store, args.device.as_deref())?;
    let scenarios = match args.scenario.as_slice() {
        [] => Scenario::ALL.as_slice(),
        named => named,
    };
    let mut requested = Vec::new();
    let mut nothing = None;
    for &scenario in scenarios {
        let audited = match find(&workspace, &store, &device.id, benchmark, scenario) {
            Ok(audited) => audited,
            // A scenario that nobody named and that has not been run is none to be audited.
            Err(PlanError::NoPerformanceRun { .. }) if args.scenario.is_empty() => {
                nothing = nothing.or(Some(scenario));
                continue;
            }
            Err(error) => return Err(failure(error, benchmark.name.as_str(), scenario)),
        };
        let round = catalogue
            .round(Some(&audited.performance.draft.spec.round))
            .map_err(Failure::usage)?;
        let drafts = drafts(&workspace, round, &audited, &args.tests);
        requested.extend(drafts.map_err(|error| failure(error, benchmark.name.as_str(), scenario))?);
    }
    if requested.is_empty() {
        return Err(match nothing {
            Some(_) => Failure::misuse(format!(
                "no scenario of {} has a valid performance run on {}",
                benchmark.name, device.name
            ))
            .hint(format!(
                "measure first: `regatta run --benchmark {} --scenario ... --mode AccuracyOnly,PerformanceOnly`",
                benchmark.name
            )),
            None => Failure::misuse(format!("the round asks for no audit of {}", benchmark.name)),
        });
    }
    store.all_or_nothing(|store| requested.iter().try_for_each(|draft| store.add_run(draft)))?;
    finish(args.no_wait, &requested, context, &workspace, &store)
}

fn failure(error: PlanError, benchmark: &str, scenario: Scenario) -> Failure {
    let again = |mode: &str| {
        format!("measure first: `regatta run --benchmark {benchmark} --scenario {scenario} --mode {mode}`")
    };
    match error {
        PlanError::NoPerformanceRun { .. } => Failure::usage(error).hint(again("PerformanceOnly")),
        PlanError::NoAccuracyRun { .. } => Failure::usage(error).hint(again("AccuracyOnly")),
        PlanError::NotInRound { .. } => Failure::usage(error),
        PlanError::Altered { .. } => Failure::from(error).hint(
            "audits come before truncation: put the delivered log back, or repeat the accuracy run; truncate a \
             staged tree, never a run",
        ),
        PlanError::Io { .. } | PlanError::Spec { .. } | PlanError::Config(_) | PlanError::Store(_) => {
            Failure::from(error)
        }
    }
}
