//! Triangular filters of Slaney's mel scale with equal areas, as `librosa.filters.mel` makes them by default.

/// The first frequency of the logarithmic part of Slaney's scale, and the mels there.
const LOGARITHMIC_FROM: (f64, f64) = (1_000.0, 15.0);

/// Filters, each of which covers a range of frequencies.
pub(super) struct MelFilters {
    /// For each band its first frequency and its weights.
    bands: Vec<(usize, Vec<f32>)>,
}

impl MelFilters {
    /// Makes filters from 0 to half the rate for the powers of a transform of `transform` values.
    pub(super) fn slaney(sample_rate: u32, transform: usize, bands: usize) -> Self {
        let rate = f64::from(sample_rate);
        let top = mel(rate / 2.0);
        let edge = |number: usize| hertz(top * number as f64 / (bands + 1) as f64);
        let frequency = |number: usize| number as f64 * rate / transform as f64;
        let band = |number: usize| {
            let [low, centre, high] = [edge(number), edge(number + 1), edge(number + 2)];
            let weight = |number: usize| {
                let rising = (frequency(number) - low) / (centre - low);
                let falling = (high - frequency(number)) / (high - centre);
                rising.min(falling).max(0.0) * 2.0 / (high - low)
            };
            let weights = (0..=transform / 2).map(weight);
            let mut covered = weights.enumerate().filter(|(_, weight)| *weight > 0.0).peekable();
            let first = covered.peek().map_or(0, |(first, _)| *first);
            (first, covered.map(|(_, weight)| weight as f32).collect())
        };
        Self {
            bands: (0..bands).map(band).collect(),
        }
    }

    /// Adds the weighted powers of each band.
    pub(super) fn apply(&self, power: &[f32], energies: &mut [f32]) {
        for ((first, weights), energy) in self.bands.iter().zip(energies) {
            let covered = power[*first..].iter().zip(weights);
            *energy = covered.map(|(power, weight)| power * weight).sum();
        }
    }
}

fn mel(hertz: f64) -> f64 {
    let (from, mels) = LOGARITHMIC_FROM;
    if hertz < from {
        hertz * mels / from
    } else {
        mels + (hertz / from).ln() / step()
    }
}

fn hertz(mel: f64) -> f64 {
    let (from, mels) = LOGARITHMIC_FROM;
    if mel < mels {
        mel * from / mels
    } else {
        from * ((mel - mels) * step()).exp()
    }
}

/// The logarithm of the ratio of two frequencies that are a mel apart.
fn step() -> f64 {
    6.4_f64.ln() / 27.0
}
