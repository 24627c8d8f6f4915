//! The quickstart: a coordinator and a device agent on this machine, the bundled benchmark through every scenario, and
//! a table of what came of it. It is `serve` and `run` with the steps between them done; nothing here measures.

mod agent;
mod compare;
mod flow;
mod place;
mod report;

pub(crate) use flow::{Options, run};
