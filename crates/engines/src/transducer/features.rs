//! Frames of a waveform for a transducer, as the reference's `FilterbankFeatures` of RNN-T computes them: pre-emphasis, logarithms of
//! energies in bands, stacks of several frames, and normalisation of each value over the sample.

use regatta_types::benchmark::SpeechFeatures;

use crate::log_mel::{LogMel, SpectrogramSizes, hann};

/// Added to an energy before its logarithm.
const MIN_ENERGY: f32 = 1e-20;
/// Added to a standard deviation.
const MIN_DEVIATION: f32 = 1e-5;

/// Computes frames, in memory that is allocated once.
pub(super) struct FrameMaker {
    features: SpeechFeatures,
    mel: LogMel,
    /// The waveform after pre-emphasis.
    emphasised: Vec<f32>,
}

impl FrameMaker {
    /// Allocates the memory for waveforms of up to `longest` values.
    pub(super) fn new(features: &SpeechFeatures, longest: usize) -> Self {
        let sizes = SpectrogramSizes {
            sample_rate: features.sample_rate,
            hop: features.hop,
            transform: features.transform,
            bands: features.bands,
        };
        Self {
            features: features.clone(),
            mel: LogMel::new(sizes, hann(features.window, false)),
            emphasised: Vec::with_capacity(longest),
        }
    }

    /// Returns the number of values in a frame.
    pub(super) const fn width(&self) -> usize {
        self.features.bands * self.features.splice
    }

    /// Returns the number of values that a waveform must have, so that it can be mirrored at its ends.
    pub(super) const fn shortest(&self) -> usize {
        self.features.transform / 2 + 1
    }

    /// Returns the number of frames of a waveform.
    pub(super) const fn count(&self, values: usize) -> usize {
        values.div_ceil(self.features.hop).div_ceil(self.features.splice)
    }

    /// Computes the frames of a waveform, which has at least [`shortest`](Self::shortest) values, and of which there are
    /// [`count`](Self::count).
    pub(super) fn compute(&mut self, waveform: &[f32], frames: &mut [f32]) {
        let emphasis = self.features.pre_emphasis;
        self.emphasised.clear();
        self.emphasised.extend(waveform.first());
        let emphasised = waveform.windows(2).map(|pair| pair[1] - emphasis * pair[0]);
        self.emphasised.extend(emphasised);
        let floor = self.features.dither.powi(2);
        // A window is centred on the first value, and on the end where it is a whole number of hops.
        let windows = waveform.len() / self.features.hop + 1;
        for (number, energies) in frames.chunks_exact_mut(self.features.bands).enumerate() {
            if number >= windows {
                energies.fill(0.0);
                continue;
            }
            self.mel.energies(&self.emphasised, number, floor, energies);
            for energy in energies {
                *energy = (*energy + MIN_ENERGY).ln();
            }
        }
        self.normalise(frames);
    }

    /// Subtracts its mean from each value of a frame, and divides by the standard deviation.
    fn normalise(&self, frames: &mut [f32]) {
        let width = self.width();
        let count = (frames.len() / width) as f64;
        for value in 0..width {
            let sum: f64 = column(frames, value, width).sum();
            let mean = sum / count;
            let squares: f64 = column(frames, value, width)
                .map(|found| (found - mean).powi(2))
                .sum();
            let deviation = (squares / (count - 1.0).max(1.0)).sqrt() as f32 + MIN_DEVIATION;
            for frame in frames.chunks_exact_mut(width) {
                frame[value] = (frame[value] - mean as f32) / deviation;
            }
        }
    }
}

fn column(frames: &[f32], value: usize, width: usize) -> impl Iterator<Item = f64> {
    frames
        .iter()
        .skip(value)
        .step_by(width)
        .map(|&found| f64::from(found))
}

/// With `REGATTA_INFERENCE` set to a checkout of mlcommons/inference, and `REGATTA_TORCH` to a Python that has PyTorch, frames are compared with those
/// of the reference's own code, and otherwise with its steps in NumPy.
#[cfg(test)]
mod tests {
    use std::{env, ffi::OsStr, path::PathBuf};

    use regatta_test_support::oracle;
    use regatta_types::benchmark::Benchmark;

    use super::*;
    use crate::conformance::speech::array;

    /// The largest difference, in standard deviations. Transforms in 32-bit floats differ by this much in quiet bands beside loud ones.
    const BOUND: f32 = 0.005;

    #[test]
    fn frames_are_those_of_the_reference_within_the_bound() {
        let Some(python) = oracle::librispeech() else {
            return;
        };
        let torch = env::var_os("REGATTA_TORCH").filter(|_| env::var_os("REGATTA_INFERENCE").is_some());
        let python = torch.map_or(python, PathBuf::from);
        let place = tempfile::tempdir().unwrap();
        let place = place.path();
        let [waveforms, lengths] = ["waveform.npy", "length.npy"].map(|name| place.join(name));
        let run = |words: &[&OsStr]| oracle::run(&python, "librispeech", "rnnt.py", words);
        run(&["waveforms".as_ref(), place.as_os_str()]);
        run(&[
            "features".as_ref(),
            waveforms.as_os_str(),
            lengths.as_os_str(),
            place.as_os_str(),
        ]);
        let text = include_str!("../../../../configs/benchmarks/rnnt.toml");
        let model = Benchmark::from_toml(text).unwrap().model;
        let longest = model.input_shape[0];
        let mut maker = FrameMaker::new(&model.transducer.unwrap().features, longest);
        let (waveforms, lengths): (Vec<f32>, Vec<i32>) = (array(&waveforms), array(&lengths));
        for (index, (waveform, length)) in waveforms.chunks_exact(longest).zip(lengths).enumerate() {
            let waveform = &waveform[..usize::try_from(length).unwrap()];
            let theirs: Vec<f32> = array(&place.join(format!("{index}.npy")));
            let mut ours = vec![f32::NAN; maker.count(waveform.len()) * maker.width()];
            maker.compute(waveform, &mut ours);
            assert_eq!(ours.len(), theirs.len());
            let differences = ours.iter().zip(&theirs).map(|(one, other)| (one - other).abs());
            let largest = differences.fold(0.0, f32::max);
            println!("waveform {index}: {largest}");
            assert!(
                largest <= BOUND && theirs.iter().any(|value| value.abs() > 0.5),
                "{largest}"
            );
        }
    }
}
