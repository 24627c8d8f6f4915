//! The power sessions of a plan: the runs that they follow, and the check of their meter.

use regatta_types::Mode;

use super::{cell_table::CellTable, plan_file::CampaignPlan, plan_problem::PlanProblem};

/// Returns the meter of a table's power sessions.
pub(super) fn meter<'a>(
    plan: &CampaignPlan,
    table: &'a CellTable,
    modes: &[Mode],
    devices: usize,
    known: &[String],
) -> Result<Option<&'a str>, PlanProblem> {
    let Some(power) = &table.power else {
        return Ok(None);
    };
    let meter = power.get_ref();
    let problem = |what: String| plan.problem(&power.span(), what);
    if !known.contains(meter) {
        let known = match known {
            [] => "there is none".to_owned(),
            known => format!("there are {}", known.join(", ")),
        };
        return Err(
            problem(format!("the lab has no meter `{meter}`; {known}")).hint("`regatta meter add` adds one")
        );
    }
    if devices != 1 {
        let what = format!("a meter measures one device, and these cells have {devices}");
        return Err(problem(what).hint("name the device that is plugged into it"));
    }
    if !modes.iter().any(|mode| is_measured(*mode)) {
        let what = "a power session follows a run in mode PerformanceOnly, and these cells have none";
        return Err(problem(what.to_owned()));
    }
    Ok(Some(meter))
}

/// Returns whether runs of this mode can be followed by a power session.
pub(super) const fn is_measured(mode: Mode) -> bool {
    matches!(mode, Mode::PerformanceOnly)
}
