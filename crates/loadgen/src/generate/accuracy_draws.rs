//! Selection of the responses that a performance run logs: one random number per sample, drawn even when it is not used.

use crate::{
    effective::EffectiveSettings,
    rng::{Mt19937, canonical},
};

/// The random numbers of all samples of a run, in the order of their sequence numbers. LoadGen seeds them with the standard's default;
/// only the offset depends on a seed.
#[derive(Debug, Clone, Default)]
pub struct AccuracyDraws {
    generator: Mt19937,
    next_sample: u64,
}

impl AccuracyDraws {
    /// Returns the number of a sample. Samples must be requested in ascending order; skipped ones are drawn and discarded.
    fn of(&mut self, sample: u64) -> f64 {
        while self.next_sample < sample {
            canonical(&mut self.generator);
            self.next_sample += 1;
        }
        self.next_sample = sample + 1;
        canonical(&mut self.generator)
    }
}

/// Selection of the samples whose responses are logged.
#[derive(Debug, Clone)]
pub enum AccuracyChoice {
    /// All (accuracy runs).
    All,
    /// None is.
    None,
    /// Some, selected by random numbers.
    Some {
        /// The samples' random numbers.
        draws: AccuracyDraws,
        /// Added to each number, modulo 1.
        offset: f64,
        /// Responses with numbers up to this value are logged.
        probability: f64,
    },
}

impl AccuracyChoice {
    /// Returns the selection of a performance run.
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

    /// Whether the response to `sample` is logged. Call it in ascending order of samples.
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
