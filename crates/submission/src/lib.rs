//! Functions over directory trees that turn finished runs into a package. The trees may come from untrusted sources.
//!
//! The requirements of a round are data (`regatta_config::round`). This crate does not run benchmarks or connect to devices.

pub mod audit;
pub mod check;
mod draft;
mod draft_directory;
pub mod files;
pub mod infer;
pub mod pack;
mod parallel;
pub mod proof;
pub mod stage;
pub mod tree;
pub mod truncate;

pub use draft_directory::DraftError;
