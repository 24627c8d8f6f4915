//! The energies of a waveform in bands of the mel scale, as librosa and PyTorch compute them: a short-time Fourier transform with windows
//! centred on every `hop` values, mirrored at both ends. What becomes of the energies differs between networks, and is not done here.

mod mel_filters;

use std::sync::Arc;

use rustfft::{
    Fft, FftDirection,
    algorithm::{
        Dft, MixedRadix, Radix4,
        butterflies::{Butterfly3, Butterfly5},
    },
    num_complex::Complex,
};

use self::mel_filters::MelFilters;

#[derive(Debug, Clone, Copy)]
pub(super) struct SpectrogramSizes {
    /// Values in a second.
    pub(super) sample_rate: u32,
    /// Values between the centres of two windows.
    pub(super) hop: usize,
    /// Values of a transform.
    pub(super) transform: usize,
    /// Bands up to half the rate.
    pub(super) bands: usize,
}

/// Computes energies, in memory that is allocated once.
pub(super) struct LogMel {
    sizes: SpectrogramSizes,
    /// The window, at most as long as a transform, in whose centre it is.
    window: Vec<f32>,
    fft: Arc<dyn Fft<f32>>,
    spectrum: Vec<Complex<f32>>,
    scratch: Vec<Complex<f32>>,
    /// The power of each frequency from 0 to half the rate.
    power: Vec<f32>,
    filters: MelFilters,
}

impl LogMel {
    pub(super) fn new(sizes: SpectrogramSizes, window: Vec<f32>) -> Self {
        let fft = forward_transform(sizes.transform);
        Self {
            sizes,
            window,
            spectrum: vec![Complex::default(); sizes.transform],
            scratch: vec![Complex::default(); fft.get_inplace_scratch_len()],
            power: vec![0.0; sizes.transform / 2 + 1],
            filters: MelFilters::slaney(sizes.sample_rate, sizes.transform, sizes.bands),
            fft,
        }
    }

    /// Computes the energies of frame `frame` in each band. `floor` is added to each power. The waveform is longer than half a transform.
    pub(super) fn energies(&mut self, waveform: &[f32], frame: usize, floor: f32, energies: &mut [f32]) {
        self.spectrum.fill(Complex::default());
        let before = (self.sizes.transform - self.window.len()) / 2;
        let windowed = self.spectrum[before..].iter_mut().zip(&self.window);
        for (place, (value, weight)) in windowed.enumerate() {
            // The centre of the transform is on the frame's value.
            let from =
                (frame * self.sizes.hop + before + place) as isize - (self.sizes.transform / 2) as isize;
            value.re = waveform[mirrored(from, waveform.len())] * weight;
        }
        self.fft
            .process_with_scratch(&mut self.spectrum, &mut self.scratch);
        for (power, value) in self.power.iter_mut().zip(&self.spectrum) {
            *power = value.norm_sqr() + floor;
        }
        self.filters.apply(&self.power, energies);
    }
}

/// Returns the transform of `len` values: powers of two directly, factors of 3 and 5 by mixed radix, and other lengths by the definition, which
/// no published benchmark needs. rustfft's own planner would add all of its algorithms to the agent, some 5 % of its size.
fn forward_transform(len: usize) -> Arc<dyn Fft<f32>> {
    let direction = FftDirection::Forward;
    if len.is_power_of_two() {
        return Arc::new(Radix4::new(len, direction));
    }
    let factor: Arc<dyn Fft<f32>> = match len {
        _ if len.is_multiple_of(5) => Arc::new(Butterfly5::new(direction)),
        _ if len.is_multiple_of(3) => Arc::new(Butterfly3::new(direction)),
        _ => return Arc::new(Dft::new(len, direction)),
    };
    let rest = forward_transform(len / factor.len());
    Arc::new(MixedRadix::new(rest, factor))
}

/// Returns the position at `from`, which is up to `len - 1` before the beginning or after the end. Positions are mirrored at both ends.
const fn mirrored(from: isize, len: usize) -> usize {
    let from = from.unsigned_abs();
    if from < len { from } else { 2 * (len - 1) - from }
}

/// Returns a Hann window: a symmetric one, or one that repeats after `len` values.
pub(super) fn hann(len: usize, is_periodic: bool) -> Vec<f32> {
    let period = if is_periodic { len } else { len - 1 } as f64;
    let value = |place: usize| 0.5 - 0.5 * (2.0 * std::f64::consts::PI * place as f64 / period).cos();
    (0..len).map(|place| value(place) as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: SpectrogramSizes = SpectrogramSizes {
        sample_rate: 16_000,
        hop: 160,
        transform: 512,
        bands: 80,
    };

    #[test]
    fn a_tone_has_its_energy_in_the_band_of_its_frequency() {
        let tone: Vec<f32> = (0..4_000)
            .map(|place| (2.0 * std::f32::consts::PI * 1_000.0 * place as f32 / 16_000.0).sin())
            .collect();
        let mut mel = LogMel::new(SIZES, hann(320, false));
        let mut energies = vec![0.0; 80];
        for frame in [3, 10, 20] {
            mel.energies(&tone, frame, 0.0, &mut energies);
            let largest = (0..80).max_by(|&one, &other| energies[one].total_cmp(&energies[other]));
            // 1,000 Hz is 15 of 45.25 mels of Slaney's scale, at 26.85 of 81 steps. Band 0 has its centre at step 1.
            assert_eq!(largest, Some(26), "frame {frame}");
        }
    }

    #[test]
    fn transforms_of_all_lengths_follow_the_definition() {
        for len in [1, 7, 12, 14, 15, 400, 480, 512] {
            let values: Vec<Complex<f32>> = (0..len)
                .map(|place| Complex::new((place * place % 23) as f32 - 11.0, 0.0))
                .collect();
            let (mut fast, mut expected) = (values.clone(), values);
            forward_transform(len).process(&mut fast);
            Dft::new(len, FftDirection::Forward).process(&mut expected);
            for (fast, expected) in fast.iter().zip(&expected) {
                assert!((fast - expected).norm() < 1e-2, "{len}: {fast} is not {expected}");
            }
        }
    }

    #[test]
    fn both_ends_are_mirrors() {
        let found: Vec<usize> = (-3..7).map(|from| mirrored(from, 4)).collect();
        assert_eq!(found, [3, 2, 1, 0, 1, 2, 3, 2, 1, 0]);
    }
}
