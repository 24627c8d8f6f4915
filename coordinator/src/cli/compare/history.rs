//! `regatta history`: the figures of each device over time, their median and deviation, and the change points with the changes.

use crate::{cli::Context, exit::CommandResult, tables};
use regatta_lab_views::{
    comparisons::{Inclusion, MIN_RUNS, RunConditions, Runs, histories},
    lookup::RunFilter,
};
use regatta_types::ExitCode;

/// Flags of `history`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct HistoryArgs {
    /// Selection of runs as for `compare`, such as device:NAME+set:KEY=VALUE [default: all runs]
    #[arg(value_name = "SELECTION")]
    selection: Option<String>,
    #[command(flatten)]
    filter: RunFilter,
    /// Include runs that are normally left out, comma separated
    #[arg(long, value_enum, value_delimiter = ',')]
    include: Vec<Inclusion>,
}

/// Prints the histories.
pub(in crate::cli) fn run(args: HistoryArgs, context: &Context) -> CommandResult {
    let (workspace, store) = context.open_store()?;
    let all = Runs {
        rows: store.runs().all()?,
        workspace: &workspace,
        store: &store,
    };
    let conditions = RunConditions {
        filter: args.filter,
        include: args.include,
    };
    let report = histories(args.selection.as_deref(), &conditions, &all)?;
    context.print(&report, || tables::histories(&report, MIN_RUNS))?;
    Ok(ExitCode::Success)
}
