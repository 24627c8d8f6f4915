//! The combinations of a table's lists: scenario, mode, state and variant of the settings. Devices and repetitions are not part of them.

use regatta_config::catalogue::Catalogue;
use regatta_text::ErrorChain;
use regatta_types::{Mode, Scenario};

use super::{
    cell_table::{CellTable, Variant},
    plan_file::CampaignPlan,
    plan_problem::PlanProblem,
};
use regatta_lab_runs::{ResolveError, StateWords, Words};

/// One combination of a table's lists.
pub(super) struct Choice<'a> {
    /// The scenario.
    pub(super) scenario: Scenario,
    /// The mode, with its place in the table.
    pub(super) mode: (usize, Mode),
    state: Option<&'a StateWords>,
    /// The variant of the settings.
    pub(super) variant: Option<&'a Variant>,
}

impl Choice<'_> {
    /// Returns the request of this combination.
    pub(super) fn words(&self, table: &CellTable) -> Words {
        let mut words = Words {
            scenario: vec![self.scenario.to_string()],
            mode: vec![self.mode.1.to_string()],
            state: self.state.cloned(),
            ..table.common_words()
        };
        if let Some(variant) = self.variant {
            words.set.extend(variant.set.clone());
            words.conf.extend(variant.conf.clone());
        }
        words
    }
}

/// Returns every combination of a table's lists, after checking each word. An error names the word's line.
pub(super) fn choices<'a>(
    plan: &CampaignPlan,
    table: &'a CellTable,
    catalogue: &Catalogue,
) -> Result<Vec<Choice<'a>>, PlanProblem> {
    let place = &table.benchmark.span();
    catalogue
        .benchmark(table.benchmark.get_ref())
        .map_err(|error| plan.problem(place, ErrorChain(&error).to_string()))?;
    let mut scenarios = Vec::new();
    for word in &table.scenario {
        let scenario: Result<Scenario, _> = word.get_ref().parse();
        scenarios.push(scenario.map_err(|error| plan.problem(&word.span(), error.to_string()))?);
    }
    if scenarios.is_empty() {
        return Err(plan.problem(place, ResolveError::NoScenario.to_string()));
    }
    let mut modes = Vec::new();
    for (index, word) in table.mode.iter().enumerate() {
        let mode: Result<Mode, _> = word.get_ref().parse();
        modes.push((
            index,
            mode.map_err(|error| plan.problem(&word.span(), error.to_string()))?,
        ));
    }
    if modes.is_empty() {
        modes.push((0, Mode::PerformanceOnly));
    }
    let states: Vec<Option<&StateWords>> = match table.state.as_slice() {
        [] => vec![None],
        states => states.iter().map(Some).collect(),
    };
    let variants = variants(plan, table)?;
    let mut choices = Vec::new();
    for &mode in &modes {
        for &scenario in &scenarios {
            for &state in &states {
                for &variant in &variants {
                    choices.push(Choice {
                        scenario,
                        mode,
                        state,
                        variant,
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
