//! Which responses a performance run logs: one random number per sample, drawn whether or not it is used.

use crate::{
    effective::EffectiveSettings,
    rng::{Mt19937, canonical},
};

/// The random numbers of all samples of a run, in order of their sequence numbers. LoadGen seeds them with the
/// standard's default; only the offset comes from a seed.
#[derive(Debug, Clone, Default)]
pub struct AccuracyDraws {
    generator: Mt19937,
    next_sample: u64,
}

impl AccuracyDraws {
    /// The number of a sample. Samples must be asked for in ascending order; those left out are passed over.
    fn of(&mut self, sample: u64) -> f64 {
        while self.next_sample < sample {
            canonical(&mut self.generator);
            self.next_sample += 1;
        }
        self.next_sample = sample + 1;
        canonical(&mut self.generator)
    }
}

/// Whether a sample's response is logged.
#[derive(Debug, Clone)]
pub enum AccuracyChoice {
    /// Every one is (accuracy runs).
    All,
    /// None is.
    None,
    /// Some are.
    Some {
        /// The samples' numbers.
        draws: AccuracyDraws,
        /// What is added to each, modulo 1.
        offset: f64,
        /// Those up to this are logged.
        probability: f64,
    },
}

impl AccuracyChoice {
    /// For a performance run.
    #[must_use]
    pub fn for_performance(settings: &EffectiveSettings, draws: &AccuracyDraws) -> Self {
        let probability = settings.effective_accuracy_log_probability();
        if probability > 0.0 {
            let offset = canonical(&mut Mt19937::new(settings.accuracy_log_rng_seed));
            Self::Some {
                draws: draws.clone(),
                offset,
                probability,
            }
        } else {
            Self::None
        }
    }

    /// Whether the response to `sample` is logged. Ask in ascending order.
    #[inline]
    pub fn includes(&mut self, sample: u64) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::Some {
                draws,
                offset,
                probability,
            } => {
                let moved = draws.of(sample) + *offset;
                let value = if moved < 1.0 { moved } else { moved - 1.0 };
                value <= *probability
            }
        }
    }
}
