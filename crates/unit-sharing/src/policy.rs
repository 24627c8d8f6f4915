//! The interface of scheduling policies: how many of the remaining samples a unit takes, and when. Each policy has a separate
//! file.

mod finish_together;
mod first_free;
mod fixed_portions;

pub use finish_together::FinishTogether;
pub use first_free::FirstFree;
pub use fixed_portions::FixedPortions;

/// A policy that shares samples among units. Times are seconds of one clock; units are numbered from 0.
pub trait Policy {
    /// Returns how many of the `remaining` samples `unit` takes now, because one of its streams is free. 0 leaves them to
    /// other units; the harness calls again whenever a batch is done.
    ///
    /// While samples remain and all units are idle, at least one unit must take some.
    fn take(&mut self, unit: usize, now: f64, remaining: usize) -> usize;

    /// Records that the oldest batch of `unit` is done.
    fn done(&mut self, unit: usize, now: f64);
}
