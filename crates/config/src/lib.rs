//! Rounds, benchmarks, systems and engine settings: the data under `configs/` and the rules by which a run chooses among them.
//!
//! Reads and checks configuration only; it touches no network and starts no run.

pub mod engine_settings;
pub mod known;
pub mod procedures;
pub mod round;
pub mod system;
