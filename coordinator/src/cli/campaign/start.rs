//! `regatta campaign start`: stores a campaign with all its cells, or nothing. The coordinator begins it.

use std::path::PathBuf;

use serde_json::json;

use super::{
    Context,
    checked_plan::{CheckedPlan, check},
    context::{Format, tell},
};
use crate::exit::{CommandResult, Failure};
use regatta_lab_store::{NewCampaign, Store};
use regatta_lab_views::wording;
use regatta_types::ExitCode;

/// Flags of `campaign start`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  regatta campaign start weekend.toml
      the coordinator runs it; follow it with `regatta campaign status --watch`")]
pub(in crate::cli) struct StartArgs {
    /// The plan's file
    #[arg(value_name = "PLAN.toml")]
    plan: PathBuf,
}

/// Stores a checked plan with all its cells.
///
/// # Errors
/// Returns a failure when another campaign has the same name, or when the store fails.
pub(in crate::cli) fn start(checked: &CheckedPlan, store: &Store) -> Result<(), Failure> {
    let (plan, expanded) = (&checked.plan, &checked.expanded);
    let is_new = store.campaigns().add(&NewCampaign {
        row: &expanded.campaign,
        plan: &plan.text,
        combinations: &expanded.combinations,
        cells: &expanded.cells,
        pins_software: plan.pins_software,
    })?;
    if is_new {
        return Ok(());
    }
    Err(Failure::misuse(format!(
        "a campaign `{}` was started just now",
        plan.name
    )))
}

pub(super) fn run(args: &StartArgs, context: &Context) -> CommandResult {
    let (workspace, store) = context.open_store()?;
    let checked = check(&args.plan, &workspace, &store)?;
    start(&checked, &store)?;
    let (plan, expanded) = (&checked.plan, &checked.expanded);
    if context.format == Format::Text {
        checked.missing.iter().for_each(|missing| tell(missing));
    }
    let deadline = expanded.campaign.deadline.as_deref();
    let document = json!({
        "campaign": plan.name,
        "cells": expanded.cells.len(),
        "started": expanded.campaign.started,
        "deadline": deadline,
        "plan_sha256": plan.sha256,
    });
    context.print(&document, || {
        let until = deadline.map_or_else(String::new, |at| format!(", until {}", wording::time(at)));
        format!(
            "campaign {} has started: {} cells{until}\nfollow it: `regatta campaign status {} --watch`",
            plan.name,
            expanded.cells.len(),
            plan.name
        )
    })?;
    Ok(ExitCode::Success)
}
