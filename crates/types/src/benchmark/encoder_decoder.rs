//! How an encoder and a decoder make a transcript of speech token by token, as a benchmark's file describes it. Computes nothing.

use serde::{Deserialize, Serialize};

/// The symbols of an English transcript, by their index: space, a to z, apostrophe, digits and `$%+-`, as the reference of Whisper answers and
/// `accuracy_eval.py` reads them.
pub const ENGLISH_SYMBOLS: &[u8] = b" abcdefghijklmnopqrstuvwxyz'0123456789$%+-";

/// A transformer with an encoder and a decoder. The model's file is its encoder; the other files are beside it. All inputs and outputs begin with
/// the batch dimension, and are float32 where nothing else is said.
///
/// | network | inputs | outputs |
/// |---|---|---|
/// | encoder | `features` `[bands, frames]` | keys and values of the encoder's steps `[layers, 2, frames / frames_per_step, width]` |
/// | decoder | `token`, `position`: int32 without dimensions; `cache` `[layers, 2, positions, width]`; `cross`, the encoder's output | a score for each token `[vocabulary]`; key and value of this position `[layers, 2, width]` |
///
/// The decoder uses only those positions of `cache` that are before `position`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct EncoderDecoder {
    /// The name of the decoder's file.
    pub decoder: String,
    /// The name of the file with the texts of tokens: a line for each, with its bytes in hexadecimal. Tokens without a text have empty lines.
    pub texts: String,
    /// The frames of which the encoder makes one step.
    pub frames_per_step: usize,
    /// The layers of the decoder.
    pub layers: usize,
    /// The values of a key, for all heads.
    pub width: usize,
    /// The number of tokens.
    pub vocabulary: usize,
    /// The tokens before the first one that is generated.
    pub prompt: Vec<usize>,
    /// The token that ends a transcript.
    pub end: usize,
    /// The most tokens that are generated, with the one that ends a transcript.
    pub most_tokens: usize,
    /// Tokens that are never generated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suppressed: Vec<usize>,
    /// How a waveform becomes frames.
    pub features: LogMelFeatures,
}

/// The most values of a sample in memory: 4 GiB as float32.
const MAX_VALUES: usize = 1 << 30;

impl EncoderDecoder {
    /// Returns the positions of the decoder's cache. The last token that is generated needs none.
    #[must_use]
    pub const fn positions(&self) -> usize {
        self.prompt
            .len()
            .saturating_add(self.most_tokens)
            .saturating_sub(1)
    }

    /// Returns the first fault of the numbers, for waveforms of `values` values. Sizes of networks are compared when they are loaded.
    #[must_use]
    pub fn fault(&self, values: usize) -> Option<String> {
        let features = &self.features;
        let sizes = [
            ("frames_per_step", self.frames_per_step),
            ("layers", self.layers),
            ("width", self.width),
            ("most_tokens", self.most_tokens),
            ("features.hop", features.hop),
            ("features.bands", features.bands),
            ("features.sample_rate", features.sample_rate as usize),
        ];
        if let Some((name, _)) = sizes.into_iter().find(|(_, size)| *size == 0) {
            return Some(format!("`{name}` is 0"));
        }
        if self.prompt.is_empty() {
            return Some("`prompt` has no token".to_owned());
        }
        let tokens = [
            ("prompt", &self.prompt[..]),
            ("end", &[self.end]),
            ("suppressed", &self.suppressed),
        ];
        for (name, tokens) in tokens {
            if let Some(token) = tokens.iter().find(|token| **token >= self.vocabulary) {
                return Some(format!(
                    "`{name}` has the token {token}, but `vocabulary` is {}",
                    self.vocabulary
                ));
            }
        }
        if self.suppressed.contains(&self.end) {
            return Some(format!("`suppressed` has the token {}, which is `end`", self.end));
        }
        let cache = [2, self.layers, self.width, self.positions()];
        let frames = [features.bands, values / features.hop];
        for (what, sizes) in [
            ("the decoder's cache", &cache[..]),
            ("a sample's features", &frames),
        ] {
            let count = sizes.iter().copied().fold(1, usize::saturating_mul);
            if count > MAX_VALUES {
                return Some(format!(
                    "{what} would have {count} values, more than {MAX_VALUES}"
                ));
            }
        }
        let half = features.transform / 2;
        if features.transform < 2 || !features.transform.is_multiple_of(2) || half >= values {
            return Some(
                "`features.transform` is not an even number below twice the values of a waveform".to_owned(),
            );
        }
        let step = features.hop.saturating_mul(self.frames_per_step);
        (!values.is_multiple_of(step))
            .then(|| format!("a waveform of {values} values is not a multiple of a step of {step}"))
    }
}

/// Log-mel features of a waveform: the logarithms to base 10 of the energies in bands of a short-time Fourier transform, at most 8 below the
/// largest, plus 4, divided by 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LogMelFeatures {
    /// Values in a second.
    pub sample_rate: u32,
    /// Values between the centres of two transforms.
    pub hop: usize,
    /// Values of a transform, and of its periodic Hann window: an even number.
    pub transform: usize,
    /// Bands of Slaney's mel scale, up to half the rate.
    pub bands: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmark::Benchmark;

    fn whisper() -> EncoderDecoder {
        let text = include_str!("../../../../configs/benchmarks/whisper.toml");
        Benchmark::from_toml(text).unwrap().model.encoder_decoder.unwrap()
    }

    #[test]
    fn the_shipped_file_has_no_fault() {
        let whisper = whisper();
        assert_eq!(whisper.fault(480_000), None);
        assert_eq!(whisper.positions(), 203);
    }

    #[test]
    fn faults_are_named() {
        let found = |change: &dyn Fn(&mut EncoderDecoder)| {
            let mut changed = whisper();
            change(&mut changed);
            changed.fault(480_000).unwrap()
        };
        assert_eq!(found(&|it| it.layers = 0), "`layers` is 0");
        assert_eq!(found(&|it| it.features.bands = 0), "`features.bands` is 0");
        assert_eq!(found(&|it| it.prompt.clear()), "`prompt` has no token");
        assert_eq!(
            found(&|it| it.prompt.push(51_866)),
            "`prompt` has the token 51866, but `vocabulary` is 51866"
        );
        assert_eq!(
            found(&|it| it.end = 60_000),
            "`end` has the token 60000, but `vocabulary` is 51866"
        );
        assert_eq!(
            found(&|it| it.suppressed = vec![7, 50_257]),
            "`suppressed` has the token 50257, which is `end`"
        );
        let large = found(&|it| it.most_tokens = usize::MAX);
        assert!(large.starts_with("the decoder's cache would have"), "{large}");
        let odd = found(&|it| it.features.transform = 401);
        assert!(
            odd.starts_with("`features.transform` is not an even number"),
            "{odd}"
        );
        assert_eq!(
            found(&|it| it.frames_per_step = 7),
            "a waveform of 480000 values is not a multiple of a step of 1120"
        );
    }

    #[test]
    fn a_misspelt_field_is_located() {
        let text = include_str!("../../../../configs/benchmarks/whisper.toml");
        let error = Benchmark::from_toml(&text.replace("most_tokens", "max_tokens")).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("TOML parse error at line"), "{error}");
        assert!(error.contains("unknown field `max_tokens`"), "{error}");
    }
}
