//! What a policy is: who gets how many of the samples that are left, and when. The policies themselves are in the
//! files beside this one.

mod by_portions;
mod first_free;
mod together;

pub use by_portions::ByPortions;
pub use first_free::FirstFree;
pub use together::FinishTogether;

/// Shares samples out among units. Times are seconds on one clock, units are numbered from 0.
pub trait Policy {
    /// A stream of `unit` is free and `remaining` samples of the query are not yet taken: how many it takes now, at most
    /// `remaining`. 0 leaves them to others; it is asked again whenever a batch is done.
    ///
    /// While samples remain and all units are idle, at least one unit gets some.
    fn take(&mut self, unit: usize, now: f64, remaining: usize) -> usize;

    /// The batch that `unit` took longest ago is done.
    fn done(&mut self, unit: usize, now: f64);
}
