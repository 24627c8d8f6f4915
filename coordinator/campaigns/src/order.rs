//! The order of cells, and of devices, that a seed fixes. The same plan has the same order on every machine.
//!
//! Repetitions are interleaved: every combination is run once before any is repeated (A B A B). Slow changes, such as heat, then
//! affect all combinations alike. Modes of one repetition stay in the plan's order: short accuracy runs come first, because later runs
//! get their rates from them.

use regatta_fsutil::hash::sha256_hex;
use regatta_types::DeviceId;

/// The place of a cell, compared field by field.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CellOrder {
    /// Minus the priority, because higher ones come first.
    pub(super) after_priority: i64,
    /// The repetition, and 0 for what comes before the first one.
    pub(super) repetition: u64,
    /// The place of the mode in the plan.
    pub(super) mode: usize,
    /// The rank of the combination by the seed.
    pub(super) rank: String,
    /// The rank of the device by the seed, for a cell that names one.
    pub(super) device: String,
}

pub(super) fn combination_rank(seed: u64, number: u64) -> String {
    sha256_hex(format!("{seed}/combination/{number}").as_bytes())
}

pub(super) fn device_rank(seed: u64, device: &DeviceId) -> String {
    sha256_hex(format!("{seed}/device/{device}").as_bytes())
}
