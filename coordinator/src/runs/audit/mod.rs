//! Audits (compliance tests) of runs of this workspace: [`plan`] makes the draft of an audit's run out of the runs that it
//! audits, [`mod@verify`] holds what came back against them. What an audit is told and how it is judged is the round's
//! (`regatta_config::procedures`) and `regatta_submission::audit`'s.

mod plan;
mod verify;

pub(crate) use plan::{PlanError, drafts, find};
pub(super) use verify::verify;
pub(crate) use verify::{expect_proven, keep};
