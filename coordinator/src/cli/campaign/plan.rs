//! `regatta campaign plan`: shows what a plan would run, on which devices, for how long, and what is missing. It starts nothing.

use std::path::PathBuf;

use super::{Context, checked_plan::check, document};
use crate::{
    exit::{self, CommandResult},
    tables,
};

/// Flags of `campaign plan`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct PlanArgs {
    /// The plan
    #[arg(value_name = "PLAN.toml")]
    plan: PathBuf,
}

/// Prints what a plan would run.
pub(super) fn run(args: &PlanArgs, context: &Context) -> CommandResult {
    let (workspace, store) = context.open_store()?;
    let checked = check(&args.plan, &workspace, &store)?;
    let document = document::plan(&checked, &store)?;
    context.print(&document, || tables::campaign_plan(&document))?;
    Ok(exit::OK)
}
