//! A sample of a batch on its way through the decoder.

use regatta_types::benchmark::EncoderDecoder;

use crate::numbers::largest;

/// The tokens of a sample.
pub(super) struct TokenStream {
    /// The generated tokens, with the one that ends the transcript.
    pub(super) generated: Vec<usize>,
    pub(super) transcript: Vec<u8>,
}

impl TokenStream {
    /// Makes a stream for transcripts of up to `bytes` bytes.
    pub(super) fn new(most_tokens: usize, bytes: usize) -> Self {
        Self {
            generated: Vec::with_capacity(most_tokens),
            transcript: Vec::with_capacity(bytes),
        }
    }

    pub(super) fn begin(&mut self) {
        self.generated.clear();
        self.transcript.clear();
    }

    /// Returns the token that the decoder gets at a position.
    pub(super) fn token(&self, position: usize, prompt: &[usize]) -> usize {
        let generated = position.checked_sub(prompt.len());
        let token = generated.map_or_else(|| prompt.get(position), |number| self.generated.get(number));
        token.copied().unwrap_or(0)
    }

    /// Takes the scores of the next token: the best is generated.
    pub(super) fn take(&mut self, scores: &[u8], is_suppressed: &[bool]) {
        let scores = scores.as_chunks().0.iter().zip(is_suppressed);
        let best = largest(scores.map(|(bytes, is_suppressed)| {
            if *is_suppressed {
                f64::NEG_INFINITY
            } else {
                f64::from(f32::from_le_bytes(*bytes))
            }
        }));
        self.generated.extend(usize::try_from(best));
    }

    /// Returns whether the transcript is at its end.
    pub(super) fn has_ended(&self, networks: &EncoderDecoder) -> bool {
        self.generated.len() >= networks.most_tokens || self.generated.last() == Some(&networks.end)
    }
}
