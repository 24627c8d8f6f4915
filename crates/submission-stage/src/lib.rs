//! Turns finished runs into a package: staging, audits, inferred results, truncation and packing. Trees may come from untrusted sources.
//!
//! A tree appears completely or not at all. This crate runs no benchmark, and connects to no device.

pub mod audit;
mod draft;
mod draft_directory;
pub mod infer;
pub mod pack;
pub mod proof;
pub mod stage;
pub mod truncate;

pub use draft_directory::DraftError;
