//! The noise of each step, as `EulerDiscreteScheduler` of diffusers computes it, and the embedding of a step's time. Removes no noise.

use regatta_types::benchmark::Diffusion;

/// The longest period of a time embedding, divided by 2 pi.
const MAX_PERIOD: f32 = 10_000.0;

/// The numbers of all steps of an image.
pub(super) struct Schedule {
    /// The deviation of the noise before each step; after the last step it is 0.
    deviations: Vec<f32>,
    /// For each step, the embedding of its time.
    times: Vec<f32>,
    features: usize,
}

impl Schedule {
    /// Computes the numbers. `diffusion` has no fault.
    pub(super) fn new(diffusion: &Diffusion) -> Self {
        let trained = deviations(diffusion);
        let steps = (0..diffusion.steps).map(|step| diffusion.training_step(step));
        Self {
            deviations: steps.clone().map(|time| trained[time]).collect(),
            times: steps
                .flat_map(|time| embedding(time, diffusion.time_features))
                .collect(),
            features: diffusion.time_features,
        }
    }

    pub(super) const fn steps(&self) -> usize {
        self.deviations.len()
    }

    /// Returns the factor of the first latents, whose deviation is 1.
    pub(super) fn first_factor(&self) -> f32 {
        self.deviations
            .first()
            .map_or(1.0, |deviation| deviation.hypot(1.0))
    }

    /// Returns the factor that brings the latents before a step to a deviation of 1.
    pub(super) fn input_factor(&self, step: usize) -> f32 {
        self.deviations[step].hypot(1.0).recip()
    }

    /// Returns the factor of the predicted noise that a step adds, which is negative.
    pub(super) fn noise_factor(&self, step: usize) -> f32 {
        let next = self.deviations.get(step + 1).copied().unwrap_or(0.0);
        next - self.deviations[step]
    }

    /// Returns the embedding of a step's time.
    pub(super) fn time(&self, step: usize) -> &[f32] {
        &self.times[step * self.features..][..self.features]
    }
}

/// Returns the deviation of the noise at each step of the training.
fn deviations(diffusion: &Diffusion) -> Vec<f32> {
    let schedule = &diffusion.schedule;
    let (first, last) = (schedule.first_beta.sqrt(), schedule.last_beta.sqrt());
    let between = (last - first) / (schedule.training_steps.max(2) - 1) as f64;
    let mut signal = 1.0;
    let of_step = |step: usize| {
        let root = first + between * step as f64;
        signal *= 1.0 - root * root;
        ((1.0 - signal) / signal).sqrt() as f32
    };
    (0..schedule.training_steps).map(of_step).collect()
}

/// Returns the cosines, then the sines, of a time with ascending periods.
fn embedding(time: usize, features: usize) -> impl Iterator<Item = f32> {
    let half = features / 2;
    let angle = move |index: usize| {
        let exponent = -MAX_PERIOD.ln() * index as f32 / half as f32;
        time as f32 * exponent.exp()
    };
    let cosines = (0..half).map(move |index| angle(index).cos());
    cosines.chain((0..half).map(move |index| angle(index).sin()))
}

#[cfg(test)]
mod tests {
    use regatta_types::benchmark::Benchmark;

    use super::*;

    /// Among others, the deviations of 20 steps by diffusers; `images.py` beside it prints it.
    const RECORDED: &str = include_str!("../../../../tests/oracles/diffusion/images.json");

    #[test]
    fn noise_is_that_of_diffusers() {
        let text = include_str!("../../../../configs/benchmarks/stable-diffusion-xl.toml");
        let diffusion = Benchmark::from_toml(text).unwrap().model.diffusion.unwrap();
        let schedule = Schedule::new(&diffusion);
        let mut recorded: serde_json::Value = serde_json::from_str(RECORDED).unwrap();
        let theirs: Vec<f32> = serde_json::from_value(recorded["sigmas"].take()).unwrap();
        assert_eq!((schedule.steps(), theirs.len()), (20, 21));
        for (ours, theirs) in schedule.deviations.iter().chain([&0.0]).zip(&theirs) {
            // Theirs is a product of 32-bit floats.
            assert!((ours - theirs).abs() <= 1e-5 * theirs, "{ours} {theirs}");
        }
        let added: f32 = (0..20).map(|step| schedule.noise_factor(step)).sum();
        assert!((added + theirs[0]).abs() < 1e-4, "{added}");
        // Cosines first: at the longest period they are almost 1.
        let time = schedule.time(19);
        assert_eq!(time.len(), 320);
        assert!(time[159] > 0.999 && time[319] < 0.001 && (time[0] - 1.0_f32.cos()).abs() < 1e-6);
    }
}
