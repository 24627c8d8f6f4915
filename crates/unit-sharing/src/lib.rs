//! Scheduling policies, which share the samples of a query among the units of a chip (a GPU, DLA cores). Board models compare
//! policies without hardware.
//!
//! The crate has pure functions and state machines over times in seconds, and uses no clock, thread or engine. The agent's
//! harness runs a [`policy`] with the real clock; [`virtual_time`] simulates the same policy on a [`board_model`]. A board
//! model is not a measurement, and supports no statement about a real device.

pub mod board_model;
pub mod board_simulator;
pub mod contention;
pub mod measured_board;
pub mod policy;
pub mod policy_comparison;
pub mod query_split;
pub mod service_times;
pub mod throughput_bound;
pub mod unit_profiler;
pub mod virtual_time;

/// The largest number of batches in flight on one unit. Space for them is allocated in advance; the harness has at most as
/// many streams.
pub const MAX_IN_FLIGHT: usize = 256;
