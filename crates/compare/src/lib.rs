//! Statistics of comparisons between two sides of repeated runs: A, the base, and B.
//!
//! [`pairing`] pairs runs by time, and [`compare()`] judges the log-ratios of pairs. [`AaFloor`] is the difference that a device
//! shows against itself. [`plan`] computes how many pairs find an effect, and [`mod@change_points`] finds where a history changes
//! level. The crate has pure functions over numbers. It does not know runs, devices or stores, and uses no clock, file or random
//! seed of its own.

mod aa_floor;
mod binomial;
mod bootstrap;
pub mod change_points;
mod comparison;
mod order_interval;
pub mod pairing;
pub mod plan;
pub mod robust;
#[cfg(test)]
mod simulation;
mod student;

pub use aa_floor::{AaFloor, FloorSource};
pub use bootstrap::bootstrap_interval;
pub use comparison::{Comparison, Direction, MorePairs, Verdict, compare};
pub use order_interval::{MIN_PAIRS, median_interval};
