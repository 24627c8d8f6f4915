//! The combinations of a table's lists: scenario, mode, state and variant of the settings. Devices and repetitions are not part of them.

use regatta_catalogue::catalogue::Catalogue;
use regatta_text::ErrorChain;
use regatta_types::Mode;

use super::{
    cell_table::{CellTable, CellValues, Variant},
    plan_file::CampaignPlan,
    plan_problem::PlanProblem,
};
use regatta_lab_runs::RunRequestError;
use regatta_lab_store::{RequestedState, RunRequest};

/// One combination of a table's lists.
pub(super) struct Choice<'a> {
    /// The place of its mode in the table.
    pub(super) mode_index: usize,
    /// The variant of the settings.
    pub(super) variant: Option<&'a Variant>,
    pub(super) request: RunRequest,
}

/// Returns every combination of a table's lists.
///
/// # Errors
/// Returns [`PlanProblem`] when values contradict each other, or the benchmark is unknown.
pub(super) fn choices<'a>(
    plan: &CampaignPlan,
    table: &'a CellTable,
    catalogue: &Catalogue,
) -> Result<Vec<Choice<'a>>, PlanProblem> {
    let place = &table.benchmark.span();
    catalogue
        .benchmark(table.benchmark.get_ref())
        .map_err(|error| plan.problem(place, ErrorChain(&error).to_string()))?;
    if table.scenario.is_empty() {
        return Err(plan.problem(place, RunRequestError::NoScenario.to_string()));
    }
    let modes = match table.mode.as_slice() {
        [] => &[Mode::PerformanceOnly],
        modes => modes,
    };
    let states: Vec<Option<&RequestedState>> = match table.state.as_slice() {
        [] => vec![None],
        states => states.iter().map(Some).collect(),
    };
    let variants = variants(plan, table)?;
    let mut choices = Vec::new();
    for (mode_index, &mode) in modes.iter().enumerate() {
        for &scenario in &table.scenario {
            for &state in &states {
                for &variant in &variants {
                    let values = CellValues {
                        scenario,
                        mode,
                        state,
                        variant,
                    };
                    let request = table.request(&values).map_err(|error| PlanProblem {
                        hint: error.hint(),
                        ..plan.problem(place, ErrorChain(&error).to_string())
                    })?;
                    choices.push(Choice {
                        mode_index,
                        variant,
                        request,
                    });
                }
            }
        }
    }
    Ok(choices)
}

fn variants<'a>(plan: &CampaignPlan, table: &'a CellTable) -> Result<Vec<Option<&'a Variant>>, PlanProblem> {
    let mut variants: Vec<Option<&Variant>> = Vec::new();
    for spanned in &table.settings {
        let variant = spanned.get_ref();
        if variants.iter().flatten().any(|known| known.name == variant.name) {
            let what = format!("two variants have the name `{}`", variant.name);
            return Err(plan
                .problem(&spanned.span(), what)
                .hint("give each a different name"));
        }
        variants.push(Some(variant));
    }
    if variants.is_empty() {
        variants.push(None);
    }
    Ok(variants)
}
