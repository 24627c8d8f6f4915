//! The quickstart: a coordinator and a device agent on this machine, the bundled benchmark through every scenario and its
//! audits, and a rehearsal of the submission: staged, truncated, checked, packed. It is `serve`, `run`, `audit run` and
//! `submission` with the steps between them done; nothing here measures.

mod agent;
mod audits;
mod compare;
mod flow;
mod place;
mod rehearsal;
mod report;
mod subject;

pub(crate) use flow::{Options, run};
pub(crate) use rehearsal::UnmetRule;
