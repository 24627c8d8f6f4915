//! Log-mel features of a waveform, as the feature extractor of Whisper computes them: logarithms to base 10 of the energies in bands, at most
//! 8 below the largest, scaled. The waveform is padded with zeros first.

use regatta_types::benchmark::LogMelFeatures;

use crate::log_mel::{LogMel, SpectrogramSizes, hann};

/// The smallest energy.
const MIN_ENERGY: f32 = 1e-10;
/// The largest difference of two logarithms.
const RANGE: f32 = 8.0;
/// Added to a logarithm, before the sum is divided by it.
const SCALE: f32 = 4.0;

/// Computes features, in memory that is allocated once.
pub(super) struct LogMelMaker {
    features: LogMelFeatures,
    mel: LogMel,
    /// The waveform with its padding.
    padded: Vec<f32>,
    energies: Vec<f32>,
    /// Band by band, the values of all frames.
    values: Vec<f32>,
}

impl LogMelMaker {
    /// Allocates the memory for waveforms that are padded to `longest` values, a multiple of the hop.
    pub(super) fn new(features: &LogMelFeatures, longest: usize) -> Self {
        let sizes = SpectrogramSizes {
            sample_rate: features.sample_rate,
            hop: features.hop,
            transform: features.transform,
            bands: features.bands,
        };
        Self {
            features: *features,
            mel: LogMel::new(sizes, hann(features.transform, true)),
            padded: vec![0.0; longest],
            energies: vec![0.0; features.bands],
            values: vec![0.0; features.bands * (longest / features.hop)],
        }
    }

    pub(super) const fn frames(&self) -> usize {
        self.padded.len() / self.features.hop
    }

    /// Computes the features of a waveform: band by band, the values of all frames.
    pub(super) fn compute(&mut self, waveform: &[f32]) -> &[f32] {
        let (filled, padding) = self.padded.split_at_mut(waveform.len());
        filled.copy_from_slice(waveform);
        padding.fill(0.0);
        let frames = self.frames();
        let silence = MIN_ENERGY.log10();
        self.values.fill(silence);
        let mut largest = silence;
        // The windows of later frames have only zeros.
        let end = waveform.len() + self.features.transform / 2;
        for frame in (0..frames).take_while(|frame| frame * self.features.hop < end) {
            self.mel.energies(&self.padded, frame, 0.0, &mut self.energies);
            for (band, energy) in self.energies.iter().enumerate() {
                let logarithm = energy.max(MIN_ENERGY).log10();
                largest = largest.max(logarithm);
                self.values[band * frames + frame] = logarithm;
            }
        }
        for value in &mut self.values {
            *value = (value.max(largest - RANGE) + SCALE) / SCALE;
        }
        &self.values
    }
}

/// Features are compared with those of the feature extractor of `transformers`, and with its steps in NumPy.
#[cfg(test)]
mod tests {
    use regatta_test_support::oracle;
    use regatta_types::benchmark::Benchmark;

    use super::*;
    use crate::conformance::speech::array;

    /// The largest difference: a feature is a quarter of a logarithm to base 10. Transforms in 32-bit floats differ by this much in quiet bands
    /// beside loud ones.
    const BOUND: f32 = 0.0001;

    #[test]
    fn features_are_those_of_the_reference_within_the_bound() {
        let (Some(numpy), Some(transformers)) = (oracle::librispeech(), oracle::squad()) else {
            return;
        };
        let place = tempfile::tempdir().unwrap();
        let place = place.path();
        let text = include_str!("../../../../configs/benchmarks/whisper.toml");
        let model = Benchmark::from_toml(text).unwrap().model;
        let longest = model.input_shape[0];
        let mut maker = LogMelMaker::new(&model.encoder_decoder.unwrap().features, longest);
        oracle::run(
            &numpy,
            "whisper",
            "speech.py",
            &["waveforms".as_ref(), place.as_os_str()],
        );
        let waveforms: Vec<f32> = array(&place.join("waveform.npy"));
        let lengths: Vec<i32> = array(&place.join("length.npy"));
        for (python, steps) in [(numpy, "numpy"), (transformers, "transformers")] {
            let words = ["features".as_ref(), steps.as_ref(), place.as_os_str()];
            oracle::run(&python, "whisper", "speech.py", &words);
            for (index, (waveform, &length)) in waveforms.chunks_exact(longest).zip(&lengths).enumerate() {
                let theirs: Vec<f32> = array(&place.join(format!("{index}.npy")));
                let ours = maker.compute(&waveform[..usize::try_from(length).unwrap()]);
                assert_eq!(ours.len(), theirs.len());
                let differences = ours.iter().zip(&theirs).map(|(one, other)| (one - other).abs());
                let largest = differences.fold(0.0, f32::max);
                println!("{steps}, waveform {index}: {largest}");
                let has_sound = theirs.iter().any(|value| *value != theirs[0]);
                assert!(largest <= BOUND && has_sound, "{largest}");
            }
        }
    }
}
