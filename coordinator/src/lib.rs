//! Everything that runs on the workstation, as a library: `main.rs` and the tests use the few public items below. Each module has a
//! description of its own; nothing here does any work.

mod assets;
mod boot_id;
mod broker;
mod campaigns;
mod change_notifier;
mod cli;
mod command_output;
mod comparisons;
mod daemon;
mod dashboard;
mod deploy;
mod descriptors;
mod documents;
mod enrollment;
mod events;
mod exit;
mod fair_slots;
mod fleet;
mod handshake_limiter;
mod ingest;
mod keys;
mod lab_error;
mod link;
mod lookup;
mod operations;
mod port_holder;
mod power;
mod runs;
mod store;
mod suggested_commands;
mod tables;
mod token_bucket;
mod wording;
mod workspace;

pub use cli::run;
pub use dashboard::page_routes;
pub use exit::{CommandResult, Failure};
