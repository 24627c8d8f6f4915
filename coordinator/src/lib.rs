//! All programs that run on the workstation, as a library for `main.rs` and the tests, which use the few public items below. Each module describes
//! itself; this file does no work.

mod cli;
mod daemon;
mod exit;
mod suggested_commands;
mod tables;

pub use cli::run;
pub use exit::{CommandResult, Failure};
pub use regatta_dashboard::page_routes;
