//! Campaigns: many cells over many devices, for days, unattended.
//!
//! `plan_file` reads a plan, whose `cell_table`s have `choices` and a `device_selection`. `expansion` makes cells of them, in the
//! `order` that the seed fixes. `scheduler` begins attempts on
//! idle devices, as `placement` decides, which spreads
//! `heat`, and ends them. [`regatta_lab_runs`] determines why a run failed, and `retry` whether another attempt follows.
//! `deadline` is when the last attempt begins, and `clock_steps` whether the clock that says so can be trusted.
//! `run_limit` is how long a device may have a run. `absences` has how long devices have been lost. [`estimate`] is how long it takes.
//!
//! [`submission_plan`] writes the plan of a submission.
//!
//! `audits` adds the audits of a plan's cells, and `audit_draft` drafts their runs.
//!
//! An attempt is an ordinary run, which [`regatta_lab_runs`] sends and judges, or one of the `power_sessions`: a `campaign_session` in one of
//! the `session_threads`, whose result `power_end` takes.

mod absences;
mod audit_draft;
mod audits;
mod campaign_session;
mod cell_table;
mod choices;
mod clock_steps;
mod deadline;
mod device_selection;
mod eligibility;
mod estimate;
mod expansion;
mod heat;
mod order;
mod placement;
mod plan_file;
mod plan_problem;
mod power_end;
mod power_sessions;
mod progress;
mod retry;
mod run_limit;
mod scheduler;
mod session_threads;
#[cfg(test)]
mod simulation;
mod software;
mod submission_plan;

pub use deadline::Deadline;
pub use estimate::{PlanEstimate, RunEstimate, TimeBasis, TimeLeft, estimate, time_left};
pub use expansion::{ExpandedPlan, Lab, expand};
pub use plan_file::CampaignPlan;
pub use plan_problem::PlanProblem;
pub use scheduler::start as start_scheduler;
pub use submission_plan::{SubmissionCells, SubmissionSettings, submission_plan};
