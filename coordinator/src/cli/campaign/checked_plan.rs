//! Reads a campaign's plan, checks it against the lab, and estimates its time, for `campaign plan` and `campaign start`.

use std::path::Path;

use anyhow::Context as _;
use jiff::Timestamp;
use regatta_catalogue::catalogue::Catalogue;
use regatta_fsutil::regular_file;

use crate::exit::Failure;
use regatta_campaigns::{CampaignPlan, ExpandedPlan, Lab, PlanEstimate, PlanProblem, estimate, expand};
use regatta_lab_runs::RunFiles;
use regatta_lab_store::{DeviceRow, Store, workspace::Workspace};
use regatta_lab_views::wording;

/// A plan that was read, checked and estimated.
pub(in crate::cli) struct CheckedPlan {
    /// The plan.
    pub(in crate::cli) plan: CampaignPlan,
    /// Its cells.
    pub(in crate::cli) expanded: ExpandedPlan,
    /// The expected time of the campaign.
    pub(in crate::cli) estimate: PlanEstimate,
    /// The conditions that stop it from being measured now, but not from starting.
    pub(in crate::cli) missing: Vec<String>,
    /// One sentence per benchmark with files that are not assets. Devices need local copies of them.
    pub(in crate::cli) missing_files: Vec<String>,
}

/// Reads and checks a plan.
///
/// # Errors
/// Returns a failure with the file, the line and the reason of the first problem.
pub(super) fn check(path: &Path, workspace: &Workspace, store: &Store) -> Result<CheckedPlan, Failure> {
    let text = regular_file::read_text(path).with_context(|| format!("cannot read {}", path.display()))?;
    check_text(&text, &path.display().to_string(), workspace, store)
}

/// Checks the text of a plan. `origin` names the plan in messages.
///
/// # Errors
/// Returns a failure with the origin, the line and the reason of the first problem.
pub(in crate::cli) fn check_text(
    text: &str,
    origin: &str,
    workspace: &Workspace,
    store: &Store,
) -> Result<CheckedPlan, Failure> {
    let located = |problem: PlanProblem| {
        let hint = problem.advice();
        Failure::usage(problem).context(origin).optional_hint(hint)
    };
    let plan = CampaignPlan::read(text).map_err(located)?;
    if let Some(known) = store.campaigns().get(&plan.name)? {
        let problem = PlanProblem::new(format!(
            "a campaign `{}` was started {} already",
            plan.name,
            wording::ago(&known.started, Timestamp::now())
        ));
        return Err(located(problem.hint("give the plan another name")));
    }
    let catalogue = Catalogue::read(Some(&workspace.configs())).map_err(Failure::usage)?;
    let devices = store.devices().all()?;
    let files = RunFiles::read(workspace, store)?;
    // Campaigns make no informative sessions, so their meters have power-dev.
    let meters = store.meters().all()?.into_iter();
    let meters: Vec<String> = meters
        .filter(|meter| meter.settings.power_dev.is_some())
        .map(|meter| meter.name)
        .collect();
    let lab = Lab {
        devices: &devices,
        catalogue: &catalogue,
        files: &files,
        meters: &meters,
    };
    let expanded = expand(&plan, &lab, Timestamp::now()).map_err(located)?;
    let missing_files = missing_files(&expanded, &files);
    let mut missing = missing_conditions(&expanded, &devices, workspace);
    missing.extend(missing_files.iter().cloned());
    Ok(CheckedPlan {
        estimate: estimate(&expanded, store)?,
        plan,
        expanded,
        missing,
        missing_files,
    })
}

/// Returns one sentence for each condition that is not met now.
fn missing_conditions(expanded: &ExpandedPlan, devices: &[DeviceRow], workspace: &Workspace) -> Vec<String> {
    let mut missing = Vec::new();
    if !workspace.is_served() {
        missing.push("no coordinator serves this workspace: `regatta serve`".to_owned());
    }
    let selected = |device: &&DeviceRow| {
        expanded
            .combinations
            .iter()
            .any(|row| row.devices.contains(&device.id))
    };
    let offline = devices.iter().filter(selected).filter(|device| !device.online);
    let offline: Vec<&str> = offline.map(|device| device.name.as_str()).collect();
    if !offline.is_empty() {
        missing.push(format!("offline: {}", offline.join(", ")));
    }
    missing
}

/// Returns one sentence for each benchmark whose files are not all assets.
fn missing_files(expanded: &ExpandedPlan, files: &RunFiles<'_>) -> Vec<String> {
    let mut missing = Vec::new();
    for draft in &expanded.drafts {
        let paths = files.not_served(&draft.spec);
        if !paths.is_empty() {
            missing.push(format!(
                "{}: no asset has {}, so devices need a local copy",
                draft.spec.benchmark.name,
                paths.join(", ")
            ));
        }
    }
    missing.sort();
    missing.dedup();
    missing
}
