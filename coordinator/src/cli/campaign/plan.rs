//! `regatta campaign plan`: shows the runs of a plan, their devices and time, and missing conditions. It starts nothing.

use std::path::PathBuf;

use super::{
    Context,
    checked_plan::{CheckedPlan, check},
};
use crate::{
    exit::{CommandResult, Failure},
    tables,
};
use regatta_lab_store::Store;
use regatta_lab_views::documents::{CampaignPlanDocument, PlannedCombination, cell_subject, device_name};
use regatta_types::ExitCode;

/// Flags of `campaign plan`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct PlanArgs {
    /// The plan's file
    #[arg(value_name = "PLAN.toml")]
    plan: PathBuf,
}

/// Prints the runs of a plan.
pub(super) fn run(args: &PlanArgs, context: &Context) -> CommandResult {
    let (workspace, store) = context.open_store()?;
    let checked = check(&args.plan, &workspace, &store)?;
    let document = plan_document(&checked, &store)?;
    context.print(&document, || tables::campaign_plan(&document))?;
    Ok(ExitCode::Success)
}

/// Returns the document of a plan's runs.
pub(in crate::cli) fn plan_document(
    checked: &CheckedPlan,
    store: &Store,
) -> Result<CampaignPlanDocument, Failure> {
    let names = store.devices().names()?;
    let expanded = &checked.expanded;
    let mut combinations = Vec::new();
    for (index, combination) in expanded.combinations.iter().enumerate() {
        let cells = expanded.cells.iter();
        let Some(time) = checked.estimate.runs.get(index) else {
            continue;
        };
        combinations.push(PlannedCombination {
            subject: cell_subject(combination),
            placement: combination.placement,
            devices: combination
                .devices
                .iter()
                .map(|id| device_name(id, &names))
                .collect(),
            repeat: expanded.repeats.get(index).copied().unwrap_or(0),
            cells: cells
                .filter(|cell| cell.combination == combination.number)
                .count(),
            time: *time,
        });
    }
    Ok(CampaignPlanDocument {
        campaign: checked.plan.name.clone(),
        plan_sha256: checked.plan.sha256.clone(),
        seed: checked.plan.seed,
        deadline: expanded.campaign.deadline.clone(),
        cells: expanded.cells.len(),
        combinations,
        estimate: checked.estimate.clone(),
        missing: checked.missing.clone(),
    })
}
