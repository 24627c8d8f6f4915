//! `CAMPAIGN.toml`: the runs of a campaign, in the terms of `regatta run`, and on which devices.
//! `configs/examples/campaign.toml` is an example.
//!
//! This module does not read devices or benchmarks; [`super::expansion`] does.

#[cfg(test)]
mod tests;

use std::ops::Range;

use jiff::Timestamp;
use regatta_fsutil::hash::sha256_hex;
use regatta_text::HumanDuration;
use regatta_types::documents::{GateSpec, RunTask};
use serde::Deserialize;
use toml::Spanned;

use super::{
    cell_table::CellTable,
    deadline::{Deadline, DeadlineError},
    plan_problem::PlanProblem,
};
use regatta_lab_runs::{complete_gate, plan_toml, text_values::optional};
use regatta_lab_store::Placement;

/// The newest schema number that this program reads.
const SCHEMA: u16 = 1;
/// The longest name of a campaign.
const MAX_NAME: usize = 63;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: Spanned<u16>,
    name: Spanned<String>,
    #[serde(default)]
    seed: u32,
    #[serde(default)]
    deadline: Option<Spanned<toml::Value>>,
    #[serde(default = "two")]
    retries: u16,
    #[serde(default = "two")]
    rate_retries: u16,
    #[serde(default, deserialize_with = "optional")]
    lose_device_after: Option<HumanDuration>,
    #[serde(default, deserialize_with = "complete_gate")]
    gate: Option<GateSpec>,
    #[serde(default, deserialize_with = "optional")]
    run_limit: Option<HumanDuration>,
    #[serde(default)]
    software: SoftwareRule,
    #[serde(default)]
    cells: Vec<Spanned<CellTable>>,
}

/// The software that a device may have during a campaign.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SoftwareRule {
    /// The same as when the campaign began.
    #[default]
    Same,
    /// Any.
    Any,
}

const fn two() -> u16 {
    2
}

/// The time after which an absent device counts as lost, unless a plan has another.
const LOSE_AFTER_S: u64 = 600;

/// A plan that has been read.
#[derive(Debug)]
pub struct CampaignPlan {
    /// The campaign's name.
    pub name: String,
    /// The file's text.
    pub text: String,
    /// SHA-256 of the text.
    pub sha256: String,
    /// The seed of the order.
    pub seed: u64,
    /// The time after which no attempt begins.
    pub deadline: Option<Deadline>,
    /// Further attempts after causes of a device or of the infrastructure.
    pub retries: u64,
    /// Further attempts at a measured rate.
    pub rate_retries: u64,
    /// The absence in seconds after which a device counts as lost.
    pub lose_after_s: u64,
    /// Whether devices must keep their software until the campaign ends.
    pub pins_software: bool,
    /// The tables, with their places in the text.
    pub cells: Vec<Spanned<CellTable>>,
    deadline_span: Option<Range<usize>>,
}

impl CampaignPlan {
    /// Reads a plan.
    ///
    /// # Errors
    /// Returns [`PlanProblem`] for all errors of the TOML, or for the first other problem.
    pub fn read(text: &str) -> Result<Self, PlanProblem> {
        let mut file: File = plan_toml::read(text).map_err(|found| {
            let problem = PlanProblem::of_toml(&found);
            match toml::from_str::<toml::Table>(text).is_ok_and(|table| table.contains_key("run")) {
                true => PlanProblem::new("this is a plan of single runs: it has [[run]]")
                    .hint("`regatta run FILE` requests them"),
                false => problem,
            }
        })?;
        let at = |span: Range<usize>, what: String| PlanProblem::at(text, &span, what);
        if *file.schema.get_ref() > SCHEMA {
            let what = format!(
                "the plan has schema {}; this program reads up to {SCHEMA}",
                file.schema.get_ref()
            );
            return Err(at(file.schema.span(), what).hint("use a newer regatta"));
        }
        if !is_name(file.name.get_ref()) {
            let what = format!(
                "invalid campaign name `{}`: use 1 to {MAX_NAME} letters, digits, dots, underscores and hyphens, and begin with a \
                 letter or digit",
                file.name.get_ref()
            );
            return Err(at(file.name.span(), what));
        }
        if file.cells.is_empty() {
            return Err(PlanProblem::new("the plan has no [[cells]]"));
        }
        let deadline_span = file.deadline.as_ref().map(Spanned::span);
        let deadline = file.deadline.map(|value| {
            let span = value.span();
            Deadline::read(value.get_ref()).map_err(|error| at(span, error.to_string()))
        });
        let lose_after_s = file
            .lose_device_after
            .map_or(LOSE_AFTER_S, |absence| absence.millis().div_ceil(1_000));
        for table in &mut file.cells {
            let own = table.get_mut();
            own.gate = own.gate.take().or_else(|| file.gate.clone());
            own.run_limit = own.run_limit.or(file.run_limit);
        }
        Ok(Self {
            name: file.name.into_inner(),
            text: text.to_owned(),
            sha256: sha256_hex(text.as_bytes()),
            seed: u64::from(file.seed),
            deadline: deadline.transpose()?,
            retries: u64::from(file.retries),
            rate_retries: u64::from(file.rate_retries),
            lose_after_s,
            pins_software: file.software == SoftwareRule::Same,
            cells: file.cells,
            deadline_span,
        })
    }

    /// Creates a problem at a place of the text.
    pub fn problem(&self, span: &Range<usize>, what: impl Into<String>) -> PlanProblem {
        PlanProblem::at(&self.text, span, what)
    }

    /// Returns the time after which no attempt begins, for a start at `now`.
    ///
    /// # Errors
    /// Returns [`PlanProblem`] when that time has passed, or is beyond the calendar.
    pub fn deadline_from(&self, now: Timestamp) -> Result<Option<Timestamp>, PlanProblem> {
        let problem = |what: String| match &self.deadline_span {
            Some(span) => self.problem(span, what),
            None => PlanProblem::new(what),
        };
        let Some(deadline) = self.deadline else {
            return Ok(None);
        };
        deadline.time_from(now).map(Some).map_err(|error| match error {
            DeadlineError::Passed { .. } => {
                problem(error.to_string()).hint("write a later time, or a duration such as \"60h\"")
            }
            error => problem(error.to_string()),
        })
    }

    /// Returns the placement of a table's cells. Tasks that measure nothing are for every device.
    ///
    /// # Errors
    /// Returns [`PlanProblem`] for a key that means nothing to such a task.
    pub(super) fn placement(&self, table: &CellTable) -> Result<Placement, PlanProblem> {
        if let Some(task) = table
            .task
            .as_ref()
            .filter(|task| !task.get_ref().is_measurement())
        {
            let name = task.get_ref().as_str();
            if *task.get_ref() == RunTask::ModelServer {
                return Err(self
                    .problem(&task.span(), "a plan cannot start a model server".to_owned())
                    .hint("`regatta endpoints run` starts one, and measures it"));
            }
            return match table.superfluous_key() {
                None => Ok(Placement::Each),
                Some(key) => Err(self
                    .problem(
                        &task.span(),
                        format!("`{key}` does not apply to cells with task `{name}`"),
                    )
                    .hint("they are done once on each device, and measure nothing")),
            };
        }
        Ok(table.placement.unwrap_or(Placement::Any))
    }
}

fn is_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    (1..=MAX_NAME).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(is_part)
}
