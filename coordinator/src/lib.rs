//! Everything that runs on the workstation, as a library: `main.rs` and the tests use the few public items below. Each module
//! describes itself; nothing here does any work.

mod cli;
mod daemon;
mod exit;
mod suggested_commands;
mod tables;

pub use cli::run;
pub use exit::{CommandResult, Failure};
pub use regatta_dashboard::page_routes;
