//! A device's A/A floor: the difference that it shows against itself. A smaller difference between two sides is none.

use crate::{order_interval::LEAST_PAIRS, robust::median};

/// The difference that a device shows against itself, measured from pairs of its runs of equal specs.
///
/// The floor is the bias of pairs, such as drift from the first run of a pair to the second. Their noise is in the interval of a
/// comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AaFloor {
    log: f64,
    pairs: usize,
}

impl AaFloor {
    /// The smallest floor as a share: 1 %.
    pub const LEAST: f64 = 0.01;

    /// Measures the floor from the log-ratios of A/A pairs, each with the later run above. Fewer than [`LEAST_PAIRS`] pairs measure
    /// nothing, and the floor is [`AaFloor::LEAST`].
    #[must_use]
    pub fn measured(log_ratios: &[f64]) -> Self {
        let bias = match log_ratios.len() {
            0..LEAST_PAIRS => 0.0,
            _ => median(log_ratios).abs(),
        };
        Self {
            log: bias.max(Self::LEAST.ln_1p()),
            pairs: log_ratios.len(),
        }
    }

    /// Returns the larger of this floor and one that a user requests as a share.
    #[must_use]
    pub fn at_least(self, share: f64) -> Self {
        Self {
            log: self.log.max(share.ln_1p()),
            ..self
        }
    }

    /// Returns the larger of two devices' floors, with the fewer pairs, for comparisons between the two.
    #[must_use]
    pub fn joined(self, other: Self) -> Self {
        Self {
            log: self.log.max(other.log),
            pairs: self.pairs.min(other.pairs),
        }
    }

    /// Returns the floor as a log-ratio.
    #[must_use]
    pub const fn log(self) -> f64 {
        self.log
    }

    /// Returns the floor as a share, such as 0.01.
    #[must_use]
    pub fn share(self) -> f64 {
        self.log.exp_m1()
    }

    /// Returns the number of A/A pairs that were there.
    #[must_use]
    pub const fn pairs(self) -> usize {
        self.pairs
    }

    /// Returns whether there were enough A/A pairs to measure the floor.
    #[must_use]
    pub const fn is_measured(self) -> bool {
        self.pairs >= LEAST_PAIRS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_floor_is_the_bias_of_the_device_and_at_least_one_percent() {
        assert!((AaFloor::measured(&[]).share() - 0.01).abs() < 1e-12);
        assert!(!AaFloor::measured(&[0.5; 5]).is_measured());
        assert!((AaFloor::measured(&[0.5; 5]).share() - 0.01).abs() < 1e-12);
        let drifting = AaFloor::measured(&[-0.03, -0.02, -0.04, -0.03, -0.03, 0.5]);
        assert!(drifting.is_measured() && (drifting.log() - 0.03).abs() < 1e-12);
        assert!((drifting.at_least(0.1).share() - 0.1).abs() < 1e-12);
        assert_eq!(drifting.joined(AaFloor::measured(&[])).pairs(), 0);
    }
}
