//! How the three networks of a transducer make a transcript of speech, as a benchmark's file describes it. Computes nothing.

use serde::{Deserialize, Serialize};

/// A transducer. The model's file is its encoder; the other files are beside it. All inputs and outputs begin with the batch dimension. A
/// network's outputs are its result and then its next states, in the order of its states.
///
/// | network | inputs before the states | result |
/// |---|---|---|
/// | encoder | `features`, float32 `[frames, bands * splice]`; `valid`, float32 `[frames]`: 1 for a frame of the sample, 0 after it | float32, `frames / frames_per_step` steps |
/// | prediction | `symbol`, int32 without dimensions; at the beginning the blank | float32 |
/// | joint | `encoded`, a step of the encoder; `predicted` | float32, a score for each symbol and last the blank |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Transducer {
    /// The name of the prediction network's file.
    pub prediction: String,
    /// The name of the joint network's file.
    pub joint: String,
    /// The frames that the encoder takes at once, a multiple of `frames_per_step`. Longer samples are encoded piece by piece.
    pub frames: usize,
    /// The frames of which the encoder makes one step.
    pub frames_per_step: usize,
    /// The number of symbols without the blank. A symbol is answered in a byte.
    pub symbols: usize,
    /// The most symbols of a step.
    pub symbols_per_step: usize,
    /// The states that the encoder keeps from one piece to the next.
    #[serde(default)]
    pub encoder_states: Vec<NetworkState>,
    /// The states that the prediction network keeps from one symbol to the next.
    pub prediction_states: Vec<NetworkState>,
    /// How a waveform becomes frames.
    pub features: SpeechFeatures,
}

/// A state that a network keeps from one computation to the next, of float32. It begins with zeros.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NetworkState {
    /// The input's name in the network.
    pub name: String,
    /// Its shape, without the batch dimension.
    pub shape: Vec<usize>,
}

/// Log-mel features of a waveform: the logarithms of the energies in bands of a short-time Fourier transform, several frames stacked, each
/// normalised over the sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SpeechFeatures {
    /// Values in a second.
    pub sample_rate: u32,
    /// Values of a Hann window, in the centre of a transform.
    pub window: usize,
    /// Values between the beginnings of two windows.
    pub hop: usize,
    /// Values of a transform, an even number.
    pub transform: usize,
    /// Bands of Slaney's mel scale, up to half the rate.
    pub bands: usize,
    /// The share of the previous value that is subtracted from each value before.
    pub pre_emphasis: f32,
    /// The noise's amplitude, whose square is added to each power.
    pub dither: f32,
    /// The frames in a stack. Stacks do not overlap.
    pub splice: usize,
}
