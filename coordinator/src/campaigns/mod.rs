//! Campaigns: many cells over many devices, for days, unattended.
//!
//! [`plan_file`] reads a plan, and [`expansion`] turns it into cells in the [`order`] that the seed fixes. [`scheduler`] begins attempts on
//! idle devices, as [`placement`] decides, and ends them. [`cause`] determines why an attempt failed, and [`retry`] whether another follows.
//! [`run_limit`] is how long a device may have a run. [`absences`] has how long devices have been lost. [`estimate`] is how long it takes.
//!
//! [`audits`] adds the audits of a plan's cells, and [`audit_draft`] drafts their runs.
//!
//! An attempt is an ordinary run: [`crate::runs`] sends and judges it. Or it is a power session, which [`power_jobs`] starts and
//! [`power_end`] judges.

mod absences;
mod audit_draft;
mod audits;
mod cause;
mod eligibility;
mod estimate;
mod expansion;
mod order;
mod placement;
mod plan_file;
mod power_end;
mod power_jobs;
mod progress;
mod retry;
mod run_limit;
mod scheduler;
#[cfg(test)]
mod simulation;
mod software;

pub(crate) use estimate::{PlanEstimate, RunEstimate, TimeBasis, TimeLeft, estimate, time_left};
pub(crate) use expansion::{ExpandedPlan, Lab, expand};
pub(crate) use plan_file::{CampaignPlan, PlanProblem};
pub(crate) use power_jobs::PowerJob;
pub(crate) use scheduler::start as start_scheduler;
