//! The runs on this device, and everything of them that is on its disk. This directory does not start processes, and it
//! does not send messages.

pub(crate) mod events;
pub(crate) mod job;
pub mod journal;
pub(crate) mod leftover_process;
mod outbox;
#[cfg(test)]
mod power_cuts;
pub(crate) mod queue;
mod recovery;
mod refused_runs;
pub(crate) mod run;
pub(crate) mod run_delivery;
pub(crate) mod run_dir;
pub(crate) mod run_failure;
mod run_store;
pub(crate) mod sealed;
mod spec_check;
mod spool;
pub(crate) mod storage;
pub(crate) mod window_policy;
