//! A sample of a batch on its way through the decoder.

use regatta_types::benchmark::EncoderDecoder;

use crate::numbers::largest;

/// The tokens of a sample.
pub(super) struct TokenStream {
    /// The position of the token that the decoder gets next.
    pub(super) position: usize,
    /// The generated tokens, with the one that ends the transcript.
    pub(super) generated: Vec<usize>,
    pub(super) transcript: Vec<u8>,
}

impl TokenStream {
    /// Makes a stream for transcripts of up to `bytes` bytes.
    pub(super) fn new(most_tokens: usize, bytes: usize) -> Self {
        Self {
            position: 0,
            generated: Vec::with_capacity(most_tokens),
            transcript: Vec::with_capacity(bytes),
        }
    }

    pub(super) fn begin(&mut self) {
        self.position = 0;
        self.generated.clear();
        self.transcript.clear();
    }

    /// Returns the token that the decoder gets next.
    pub(super) fn token(&self, prompt: &[usize]) -> usize {
        let generated = self.position.checked_sub(prompt.len());
        let token = generated.map_or_else(|| prompt.get(self.position), |number| self.generated.get(number));
        token.copied().unwrap_or(0)
    }

    /// Takes the scores of the token after this position: the best is generated, unless the prompt has it.
    pub(super) fn take(&mut self, scores: &[u8], prompt: &[usize], is_suppressed: &[bool]) {
        self.position += 1;
        if self.position < prompt.len() {
            return;
        }
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
