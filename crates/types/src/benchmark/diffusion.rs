//! How three networks make an image of a caption by latent diffusion, as a benchmark's file describes it. Computes nothing.

use serde::{Deserialize, Serialize};

/// Networks of latent diffusion. The model's file has its text encoders; the other files are beside it. All inputs and outputs begin with the
/// batch dimension, and are float32 where nothing else is said. Both prompts of a sample are a pair: the negative one, then the caption.
///
/// | network | inputs | outputs |
/// |---|---|---|
/// | text encoders | `input_ids`, `input_ids_2`, the tokens for each encoder: int32 `[2, tokens]` | `[2, tokens * text_width + pooled_width]`: the hidden states of both encoders token by token, and the projected text of the second |
/// | denoiser | `latent` `[channels, height, width]`; `time` `[time_features]`; `text`, the encoders' output | the predicted noise `[2, channels, height, width]` |
/// | image decoder | `latent` `[channels, height, width]` | red, green and blue from -1 to 1 `[3, image height, image width]` |
///
/// The image decoder is always computed in float32, because it exceeds the range of 16-bit floats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Diffusion {
    /// The name of the denoiser's file.
    pub denoiser: String,
    /// The name of the image decoder's file.
    pub image_decoder: String,
    /// The name of the `.npy` file with the latents with which all images begin, float32 `[1, channels, height, width]`.
    pub latents: String,
    /// The names of the files with the networks' weights, if they are not in the networks' own files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<String>,
    /// Channels, height and width of latents.
    pub latent_shape: [usize; 3],
    /// Height and width of an image in pixels.
    pub image_size: [usize; 2],
    /// The number of values in a token's hidden states, of both encoders together.
    pub text_width: usize,
    /// The number of values in a projected text.
    pub pooled_width: usize,
    /// The number of values in an embedded time: cosines, then as many sines.
    pub time_features: usize,
    /// The number of tokens.
    pub vocabulary: i32,
    /// The token that fills up a shorter text, for each text encoder.
    pub paddings: [i32; 2],
    /// The tokens of the negative prompt, without padding.
    pub negative_prompt: Vec<i32>,
    /// The number of denoising steps of an image.
    pub steps: usize,
    /// The factor of the difference between the noise predicted for the caption and for the negative prompt.
    pub guidance: f32,
    /// The number by which latents are divided before they are decoded.
    pub latent_scale: f32,
    /// The noise of each step.
    pub schedule: NoiseSchedule,
}

/// The noise of diffusers' `EulerDiscreteScheduler` with `timestep_spacing = "leading"`, `beta_schedule = "scaled_linear"` and
/// `prediction_type = "epsilon"`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NoiseSchedule {
    /// The steps with which the network was trained.
    pub training_steps: usize,
    /// The variance that the first training step adds.
    pub first_beta: f64,
    /// The variance that the last training step adds.
    pub last_beta: f64,
    /// Added to the times of all steps.
    pub offset: usize,
}

/// The maximum number of values in a tensor.
const MAX_VALUES: usize = 1 << 30;
/// The maximum number of steps of an image, and of a training.
const MAX_STEPS: usize = 100_000;

impl Diffusion {
    /// Returns the number of values in the latents.
    #[must_use]
    pub const fn latent_values(&self) -> usize {
        let [channels, height, width] = self.latent_shape;
        channels.saturating_mul(height).saturating_mul(width)
    }

    /// Returns the number of values in both encoded prompts, which have `tokens` tokens each.
    #[must_use]
    pub const fn text_values(&self, tokens: usize) -> usize {
        tokens
            .saturating_mul(self.text_width)
            .saturating_add(self.pooled_width)
            .saturating_mul(2)
    }

    /// Returns the number of values in an image.
    #[must_use]
    pub const fn image_values(&self) -> usize {
        let [height, width] = self.image_size;
        height.saturating_mul(width).saturating_mul(3)
    }

    /// Returns the training step at which step `number` of an image is computed, from the noisiest one to the last.
    #[must_use]
    pub fn training_step(&self, number: usize) -> usize {
        let distance = self.schedule.training_steps.checked_div(self.steps).unwrap_or(0);
        let left = self.steps.saturating_sub(1).saturating_sub(number);
        left.saturating_mul(distance).saturating_add(self.schedule.offset)
    }

    /// Returns the first fault of the numbers, for texts of `tokens` tokens. Sizes of networks are compared when they are loaded.
    #[must_use]
    pub fn fault(&self, tokens: usize) -> Option<String> {
        self.size_fault(tokens)
            .or_else(|| self.token_fault(tokens))
            .or_else(|| self.schedule_fault())
    }

    fn size_fault(&self, tokens: usize) -> Option<String> {
        let sizes = [
            ("latent_shape", self.latent_values()),
            ("image_size", self.image_values()),
            ("text_width", self.text_width),
            ("pooled_width", self.pooled_width),
            ("time_features", self.time_features),
        ];
        for (name, size) in sizes {
            if size == 0 || size > MAX_VALUES {
                return Some(format!("`{name}` has {size} values: use 1 to {MAX_VALUES}"));
            }
        }
        if tokens == 0 || self.text_values(tokens) > MAX_VALUES {
            return Some(format!(
                "texts of {tokens} tokens have {} values: use 1 to {MAX_VALUES}",
                self.text_values(tokens)
            ));
        }
        let is_even = self.time_features.is_multiple_of(2);
        (!is_even).then(|| format!("`time_features` is {}: use an even number", self.time_features))
    }

    fn token_fault(&self, tokens: usize) -> Option<String> {
        if self.negative_prompt.is_empty() || self.negative_prompt.len() > tokens {
            return Some(format!(
                "`negative_prompt` has {} tokens, but a text has 1 to {tokens}",
                self.negative_prompt.len()
            ));
        }
        let mut all_tokens = self.negative_prompt.iter().chain(&self.paddings);
        let unknown = all_tokens.find(|token| !(0..self.vocabulary).contains(*token))?;
        Some(format!(
            "there is the token {unknown}, but `vocabulary` is {}",
            self.vocabulary
        ))
    }

    fn schedule_fault(&self) -> Option<String> {
        let schedule = &self.schedule;
        let trained = schedule.training_steps;
        if trained > MAX_STEPS || !(1..=trained).contains(&self.steps) {
            return Some(format!(
                "`steps` is {}: use 1 to `schedule.training_steps` ({trained}), which is at most {MAX_STEPS}",
                self.steps
            ));
        }
        let first_step = self.training_step(0);
        if first_step >= trained {
            return Some(format!(
                "the first step has the time {first_step}, but `schedule.training_steps` is {trained}"
            ));
        }
        let (first, last) = (schedule.first_beta, schedule.last_beta);
        if !(first > 0.0 && first <= last && last < 1.0) {
            return Some(format!(
                "`schedule.first_beta` is {first} and `schedule.last_beta` {last}: use ascending numbers between 0 and 1"
            ));
        }
        if !self.guidance.is_finite() {
            return Some(format!("`guidance` is {}: use a finite number", self.guidance));
        }
        (!self.latent_scale.is_normal()).then(|| {
            format!(
                "`latent_scale` is {}: use a number other than 0",
                self.latent_scale
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmark::Benchmark;

    fn diffusion() -> Diffusion {
        let text = include_str!("../../../../configs/benchmarks/stable-diffusion-xl.toml");
        Benchmark::from_toml(text).unwrap().model.diffusion.unwrap()
    }

    #[test]
    fn the_shipped_file_has_no_fault_and_the_references_times() {
        let shipped = diffusion();
        assert_eq!(shipped.fault(77), None);
        let times: Vec<usize> = (0..20).map(|step| shipped.training_step(step)).collect();
        assert_eq!((times[0], times[1], times[19]), (951, 901, 1));
        assert_eq!(shipped.text_values(77), 2 * (77 * 2048 + 1280));
    }

    #[test]
    fn faults_are_named() {
        let found = |change: &dyn Fn(&mut Diffusion)| {
            let mut changed = diffusion();
            change(&mut changed);
            changed.fault(77).unwrap()
        };
        assert_eq!(
            found(&|it| it.latent_shape[1] = 0),
            "`latent_shape` has 0 values: use 1 to 1073741824"
        );
        assert!(
            found(&|it| it.image_size = [usize::MAX, 2])
                .starts_with("`image_size` has 18446744073709551615 values")
        );
        assert_eq!(
            found(&|it| it.time_features = 3),
            "`time_features` is 3: use an even number"
        );
        assert_eq!(
            found(&|it| it.negative_prompt.clear()),
            "`negative_prompt` has 0 tokens, but a text has 1 to 77"
        );
        assert_eq!(
            found(&|it| it.paddings[1] = 49_408),
            "there is the token 49408, but `vocabulary` is 49408"
        );
        assert!(
            found(&|it| it.steps = 0).starts_with("`steps` is 0: use 1 to `schedule.training_steps` (1000)")
        );
        assert_eq!(
            found(&|it| it.schedule.offset = 50),
            "the first step has the time 1000, but `schedule.training_steps` is 1000"
        );
        assert!(found(&|it| it.schedule.last_beta = 1.0).contains("use ascending numbers"));
        assert!(found(&|it| it.latent_scale = 0.0).contains("`latent_scale` is 0"));
        assert!(found(&|it| it.guidance = f32::NAN).contains("`guidance` is NaN"));
    }
}
