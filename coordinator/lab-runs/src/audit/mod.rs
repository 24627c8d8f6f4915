//! Audits (compliance tests) of this workspace's runs. `plan` drafts an audit's run from the runs that it audits, and `mod@verify`
//! compares the result with them. The round (`regatta_catalogue::procedures`) and `regatta_submission_stage::audit` define an audit's settings and
//! its criteria.

mod plan;
mod verify;

pub use plan::{AuditPlanError, drafts, find, have_same_settings, of_performance, of_runs};
pub(super) use verify::verify;
pub use verify::{expect_proven, keep};
