//! A device's A/A floor: the difference that it shows against itself. A smaller difference between two sides is none.

use crate::{
    order_interval::{MIN_PAIRS, median_interval},
    robust::median,
};

/// The difference that a device shows against itself, measured from pairs of its runs of equal specs.
///
/// The floor is the bias of pairs, such as drift from the first run of a pair to the second. Their noise is in the interval of a
/// comparison: a bias that the noise of the pairs explains as well is none, because a floor of noise would hide effects that many pairs
/// show.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AaFloor {
    log: f64,
    pairs: usize,
    source: FloorSource,
}

/// The origin of a floor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FloorSource {
    /// There are fewer than [`MIN_PAIRS`] A/A pairs: the floor is [`AaFloor::MIN`].
    Assumed,
    /// The interval of the A/A pairs includes no difference: the floor is [`AaFloor::MIN`].
    Unbiased,
    /// The A/A pairs differ, and the floor is their median.
    Bias,
    /// A user requested a larger floor.
    Requested,
}

impl AaFloor {
    /// The smallest floor as a share: 1 %.
    pub const MIN: f64 = 0.01;

    /// Measures the floor from the log-ratios of A/A pairs, each with the later run above: their median, if its 95 % interval excludes no
    /// difference, but at least [`AaFloor::MIN`].
    #[must_use]
    pub fn measured(log_ratios: &[f64]) -> Self {
        let least = Self::MIN.ln_1p();
        let interval = median_interval(log_ratios);
        let bias = interval
            .filter(|[low, high]| *low > 0.0 || *high < 0.0)
            .map_or(0.0, |_| median(log_ratios).abs());
        Self {
            log: bias.max(least),
            pairs: log_ratios.len(),
            source: match interval {
                None => FloorSource::Assumed,
                Some(_) if bias > least => FloorSource::Bias,
                Some(_) => FloorSource::Unbiased,
            },
        }
    }

    /// Returns the larger of this floor and one that a user requests as a share.
    #[must_use]
    pub fn at_least(self, share: f64) -> Self {
        let requested = share.ln_1p();
        if requested <= self.log {
            return self;
        }
        Self {
            log: requested,
            source: FloorSource::Requested,
            ..self
        }
    }

    /// Returns the larger of two devices' floors, with the fewer pairs, for comparisons between the two.
    #[must_use]
    pub fn joined(self, other: Self) -> Self {
        let larger = if other.log > self.log { other } else { self };
        Self {
            pairs: self.pairs.min(other.pairs),
            ..larger
        }
    }

    /// Returns the origin of the floor.
    #[must_use]
    pub const fn source(self) -> FloorSource {
        self.source
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
        self.pairs >= MIN_PAIRS
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
        let drifting = AaFloor::measured(&[-0.03, -0.02, -0.04, -0.03, -0.03, -0.5]);
        assert_eq!(drifting.source(), FloorSource::Bias);
        assert!(drifting.is_measured() && (drifting.log() - 0.03).abs() < 1e-12);
        let requested = drifting.at_least(0.1);
        assert!((requested.share() - 0.1).abs() < 1e-12);
        assert_eq!(requested.source(), FloorSource::Requested);
        assert_eq!(drifting.at_least(0.001), drifting);
        let joined = AaFloor::measured(&[]).joined(drifting);
        assert_eq!((joined.pairs(), joined.source()), (0, FloorSource::Bias));
    }

    #[test]
    fn noise_of_few_pairs_is_no_floor() {
        let noisy = AaFloor::measured(&[0.12, -0.09, 0.07, 0.16, -0.14, 0.07, 0.08]);
        assert_eq!(noisy.source(), FloorSource::Unbiased);
        assert!((noisy.share() - AaFloor::MIN).abs() < 1e-12);
        // More pairs of the same noise around a bias measure it.
        let many: Vec<f64> = (0..300).map(|n| 0.07 + 0.1 * f64::from(n % 5 - 2)).collect();
        assert_eq!(AaFloor::measured(&many).source(), FloorSource::Bias);
    }
}
