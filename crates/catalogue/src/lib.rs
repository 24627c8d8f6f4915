//! Rounds, benchmarks and systems: the data under `configs/` and the rules by which a run selects among them.
//!
//! The crate only reads and checks configuration. It touches no network and starts no run.

pub mod boards;
pub mod catalogue;
pub mod known;
mod packed;
pub mod procedures;
pub mod round;
pub mod servers;
pub mod system;
