//! An atomic word that controls the calls between LoadGen and the SUT: outstanding samples, calls inside the SUT, closed flag.
//!
//! An abandoned run must be left in a state that can never end by itself. No call may be inside the caller's SUT when it is
//! returned to the caller. One atomic word holds both facts. Giving up therefore has a defined order relative to every query and response.

use std::sync::atomic::{AtomicU64, Ordering};

const ONE_INSIDE: u64 = 1 << 48;
const OUTSTANDING: u64 = ONE_INSIDE - 1;
const CLOSED: u64 = 1 << 63;

/// The gate. It is open at first.
#[derive(Debug, Default)]
pub(crate) struct Gate(AtomicU64);

impl Gate {
    /// Registers a call from LoadGen into SUT or QSL, with `samples` samples to be answered. `false` means that the gate is closed and the
    /// call must not be made.
    pub(crate) fn enter(&self, samples: usize) -> bool {
        let step = ONE_INSIDE + samples as u64;
        if self.0.fetch_add(step, Ordering::AcqRel) & CLOSED == 0 {
            return true;
        }
        self.0.fetch_sub(step, Ordering::AcqRel);
        false
    }

    /// Registers the return of a call that `enter` admitted.
    pub(crate) fn leave(&self) {
        self.0.fetch_sub(ONE_INSIDE, Ordering::AcqRel);
    }

    /// Registers responses to `samples` outstanding samples. `false` means that the gate is closed and LoadGen must not get them.
    pub(crate) fn answer(&self, samples: usize) -> bool {
        self.0.fetch_sub(samples as u64, Ordering::AcqRel) & CLOSED == 0
    }

    /// Closes the gate and returns the number of samples that will never get a response. `None` when it was already closed.
    pub(crate) fn close(&self) -> Option<u64> {
        let before = self.0.fetch_or(CLOSED, Ordering::AcqRel);
        (before & CLOSED == 0).then_some(before & OUTSTANDING)
    }

    /// Whether any call is inside SUT or QSL.
    pub(crate) fn occupied(&self) -> bool {
        (self.0.load(Ordering::Acquire) & !CLOSED) >= ONE_INSIDE
    }

    /// Returns the number of samples that wait for a response.
    pub(crate) fn outstanding(&self) -> u64 {
        self.0.load(Ordering::Relaxed) & OUTSTANDING
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_outstanding_when_it_closes_are_reported_once() {
        let gate = Gate::default();
        assert!(gate.enter(8));
        assert!(gate.occupied());
        assert!(gate.answer(3));
        gate.leave();
        assert!(!gate.occupied());
        assert_eq!(gate.outstanding(), 5);
        assert_eq!(gate.close(), Some(5));
        assert_eq!(gate.close(), None);
    }

    #[test]
    fn closed_gate_blocks_all_callers() {
        let gate = Gate::default();
        assert!(gate.enter(2));
        gate.close();
        assert!(!gate.answer(1));
        assert!(!gate.enter(1));
        assert!(gate.occupied());
        gate.leave();
        assert!(!gate.occupied());
    }
}
