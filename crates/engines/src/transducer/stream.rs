//! A sample of a batch on its way through the networks of a transducer.

use regatta_types::benchmark::Transducer;

use crate::numbers::largest;

/// A sample of the batch on its way through the networks.
pub(super) struct SpeechStream {
    /// All frames of the sample. The length is that of the longest sample.
    pub(super) features: Vec<f32>,
    pub(super) frames: usize,
    /// The encoder's steps, as bytes.
    pub(super) encoded: Vec<u8>,
    pub(super) steps: usize,
    /// The step that the joint network has.
    pub(super) step: usize,
    pub(super) symbols_of_step: usize,
    pub(super) transcript: Vec<u8>,
}

impl SpeechStream {
    /// Takes the best of the scores. Returns whether it is a symbol. After a blank, or the most symbols of a step, the next step follows.
    pub(super) fn take(&mut self, scores: &[u8], transducer: &Transducer) -> bool {
        let scores = scores.as_chunks().0.iter();
        let best = largest(scores.map(|bytes| f64::from(f32::from_le_bytes(*bytes))));
        // There are at most 255 symbols.
        let symbol = u8::try_from(best)
            .ok()
            .filter(|&symbol| usize::from(symbol) < transducer.symbols);
        self.transcript.extend(symbol);
        self.symbols_of_step += 1;
        if symbol.is_none() || self.symbols_of_step == transducer.symbols_per_step {
            self.step += 1;
            self.symbols_of_step = 0;
        }
        symbol.is_some()
    }
}
