//! From finished runs to a package, as functions over directory trees that may be anybody's.
//!
//! What a round asks is data (`regatta_config::round`); running benchmarks and talking to devices are not this crate's.

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
