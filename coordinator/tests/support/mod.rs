//! Shared code of the coordinator's tests: the real `regatta` binary in its own workspace, a real mosquitto, and a simulated
//! device. The device follows the wire protocol, and forges, loses and doubles messages for a test.

// `allow` and not `expect`: each test file uses its own share of this.
#![allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    clippy::allow_attributes,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "test support, of which each test file uses its share"
)]

pub mod coordinator;
pub mod delivering;
pub mod device;
pub mod page_client;

use regatta_random::SplitMix64;
pub use regatta_test_support::{eventually, free_port, mosquitto};

/// A small generator, so that a failing test can be repeated by its seed.
pub struct Dice(SplitMix64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    /// True once in `of` throws.
    pub fn hits(&mut self, of: u64) -> bool {
        of > 0 && self.below(of) == 0
    }

    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        self.0.bytes(length)
    }
}
