//! The framework of the fault campaigns: it plans labs from a seed, runs each alone in namespaces, several at a time, and reports. It has what
//! campaigns share to inject faults, and the check of runs by what was written on the device's disk.
//!
//! A campaign implements [`FaultCampaign`] and [`FaultLab`]. Its kinds of faults, its labs and its further checks are its own.

mod campaign;
mod deck;
pub mod disk;
mod labs;
mod options;
pub mod processes;
mod report;
mod rng;
pub mod run_checker;
#[cfg(test)]
mod run_checker_tests;
pub mod run_mutation;
pub mod write_log;

pub use campaign::{FaultCampaign, FaultLab, LAB_ROOT, run_campaign};
pub use deck::deck;
pub use labs::{end_with_the_parent, start_alone};
pub use options::{LabOrder, Options, Sizes};
pub use report::Report;
pub use rng::Rng;
