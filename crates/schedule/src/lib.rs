//! How the samples of a benchmark are shared among the units of a chip (a GPU, DLA cores), and a modelled board on which
//! such a policy is judged without silicon.
//!
//! Pure functions and state machines over times in seconds: no clock, no threads, no engine. The agent's harness drives
//! a [`policy`] with the real clock; [`virtual_time`] drives the same policy over a [`board`] in none. What a board's
//! table says is a model, never a measurement: no claim about a real device follows from it.

pub mod board;
pub mod bound;
pub mod chip;
pub mod judge;
pub mod learn;
pub mod policy;
pub mod random;
pub mod sharing;
pub mod split;
pub mod times;
pub mod trace;
pub mod virtual_time;

/// Batches of one unit that are in flight at most, for which there is room from the start: the harness's streams are no more.
pub const MOST_IN_FLIGHT: usize = 256;
