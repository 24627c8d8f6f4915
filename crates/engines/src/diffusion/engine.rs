//! The loop: both prompts to the text encoders, noise predicted and removed step by step, latents to the image decoder. Nothing is allocated for a
//! batch.

use regatta_types::benchmark::Diffusion;

use super::schedule::Schedule;
use crate::{
    Answers, Batch, Engine, EngineError,
    network::{Network, put, read_floats},
};

/// The written inputs of the denoiser.
const LATENT: usize = 0;
const TIME: usize = 1;

/// The networks of a stream.
pub(super) struct DiffusionNetworks<N> {
    pub(super) texts: N,
    pub(super) denoiser: N,
    pub(super) image_decoder: N,
}

/// Networks of latent diffusion, as an engine for captions.
pub(super) struct DiffusionEngine<N> {
    networks: DiffusionNetworks<N>,
    schedule: Schedule,
    guidance: f32,
    latent_scale: f32,
    vocabulary: i32,
    /// The bytes of a caption's tokens for one text encoder.
    text_bytes: usize,
    /// The negative prompt for each text encoder, padded.
    negative: [Vec<u8>; 2],
    /// The latents with which an image begins.
    first: Vec<f32>,
    /// The latents of each stream.
    latents: Vec<f32>,
    /// The streams of a batch.
    active: Vec<usize>,
    pixels: usize,
}

impl<N: Network> DiffusionEngine<N> {
    /// Allocates the memory for captions of `tokens` tokens.
    pub(super) fn new(
        diffusion: &Diffusion,
        tokens: usize,
        networks: DiffusionNetworks<N>,
        latents: &[f32],
    ) -> Self {
        let schedule = Schedule::new(diffusion);
        let factor = schedule.first_factor();
        let streams = networks.texts.max_batch();
        let negative = diffusion.paddings.map(|padding| {
            let prompt = diffusion.negative_prompt.iter().copied();
            let padded = prompt.chain(std::iter::repeat(padding)).take(tokens);
            padded.flat_map(i32::to_le_bytes).collect()
        });
        Self {
            first: latents.iter().map(|value| value * factor).collect(),
            latents: vec![0.0; streams * latents.len()],
            networks,
            schedule,
            guidance: diffusion.guidance,
            latent_scale: diffusion.latent_scale,
            vocabulary: diffusion.vocabulary,
            text_bytes: tokens * size_of::<i32>(),
            negative,
            active: Vec::with_capacity(streams),
            pixels: diffusion.image_values() / 3,
        }
    }

    /// Gives both prompts of each sample to the text encoders.
    fn begin(&mut self, batch: &Batch<'_>) -> Result<(), EngineError> {
        let (texts, text_bytes, vocabulary) = (&mut self.networks.texts, self.text_bytes, self.vocabulary);
        let (mut stream, mut unknown) = (0, None);
        let nowhere = std::iter::repeat_with(|| &mut [] as &mut [u8]);
        batch.each_sample(2 * text_bytes, nowhere, |sample, _| {
            unknown = unknown.or_else(|| unknown_token(sample, vocabulary));
            for (input, (caption, negative)) in
                sample.chunks_exact(text_bytes).zip(&self.negative).enumerate()
            {
                let (first, second) = texts.input(input, stream).split_at_mut(text_bytes);
                first.copy_from_slice(negative);
                second.copy_from_slice(caption);
            }
            stream += 1;
        })?;
        match unknown {
            Some(token) => Err(EngineError::Sample(Box::new(UnknownToken { token, vocabulary }))),
            None => Ok(()),
        }
    }

    /// Removes the noise that the denoiser predicts in a step.
    fn step(&mut self, step: usize) -> Result<(), EngineError> {
        let (denoiser, values) = (&mut self.networks.denoiser, self.first.len());
        let factor = self.schedule.input_factor(step);
        for (&stream, latents) in self.active.iter().zip(self.latents.chunks_exact(values)) {
            put(
                denoiser.input(LATENT, stream),
                latents.iter().map(|value| value * factor),
            );
            put(
                denoiser.input(TIME, stream),
                self.schedule.time(step).iter().copied(),
            );
        }
        denoiser.compute(&self.active, step)?;
        let factor = self.schedule.noise_factor(step);
        for (&stream, latents) in self.active.iter().zip(self.latents.chunks_exact_mut(values)) {
            let (negative, prompted) = denoiser.result(stream).split_at(values * size_of::<f32>());
            for (value, (negative, prompted)) in latents
                .iter_mut()
                .zip(read_floats(negative).zip(read_floats(prompted)))
            {
                let noise = negative + self.guidance * (prompted - negative);
                *value += factor * noise;
            }
        }
        Ok(())
    }

    /// Decodes the latents, and adds the images to `answers`.
    fn decode(&mut self, answers: &mut Answers) -> Result<(), EngineError> {
        let (decoder, values) = (&mut self.networks.image_decoder, self.first.len());
        for (&stream, latents) in self.active.iter().zip(self.latents.chunks_exact(values)) {
            let scaled = latents.iter().map(|value| value / self.latent_scale);
            put(decoder.input(LATENT, stream), scaled);
        }
        decoder.compute(&self.active, 0)?;
        for &stream in &self.active {
            let planes = decoder.result(stream);
            let image = answers.add(3 * self.pixels);
            for (channel, plane) in planes.chunks_exact(self.pixels * size_of::<f32>()).enumerate() {
                for (pixel, value) in image.chunks_exact_mut(3).zip(read_floats(plane)) {
                    pixel[channel] = level(value);
                }
            }
        }
        Ok(())
    }
}

impl<N: Network> Engine for DiffusionEngine<N> {
    fn max_batch(&self) -> usize {
        self.networks.texts.max_batch()
    }

    fn unit(&self) -> usize {
        self.networks.texts.unit()
    }

    fn unit_name(&self) -> String {
        self.networks.texts.unit_name()
    }

    fn answer_bytes(&self) -> usize {
        3 * self.pixels
    }

    fn infer(&mut self, batch: &Batch<'_>, answers: &mut Answers) -> Result<(), EngineError> {
        let size = batch.size(self.max_batch())?;
        self.begin(batch)?;
        self.active.clear();
        self.active.extend(0..size);
        let DiffusionNetworks { texts, denoiser, .. } = &mut self.networks;
        texts.compute_into(&self.active, denoiser)?;
        for latents in self.latents.chunks_exact_mut(self.first.len()).take(size) {
            latents.copy_from_slice(&self.first);
        }
        (0..self.schedule.steps()).try_for_each(|step| self.step(step))?;
        self.decode(answers)
    }
}

/// The error for a sample with a token that the text encoders do not know.
#[derive(Debug, thiserror::Error)]
#[error("a caption has the token {token}, but there are {vocabulary} tokens")]
struct UnknownToken {
    token: i32,
    vocabulary: i32,
}

/// Returns the first token of a sample that is not in the vocabulary.
fn unknown_token(sample: &[u8], vocabulary: i32) -> Option<i32> {
    let mut tokens = sample
        .as_chunks()
        .0
        .iter()
        .map(|token| i32::from_le_bytes(*token));
    tokens.find(|token| !(0..vocabulary).contains(token))
}

/// Returns the level of a value from -1 to 1, rounded as NumPy does. What is not a number is 0.
fn level(value: f32) -> u8 {
    ((value / 2.0 + 0.5).clamp(0.0, 1.0) * 255.0).round_ties_even() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_rounded_to_even_and_clamped() {
        let found = [-1.5, -1.0, 0.0, 1.0, 7.0, f32::NAN, -1.0 + 5.0 / 255.0].map(level);
        assert_eq!(found, [0, 0, 128, 255, 255, 0, 2]);
    }

    #[test]
    fn tokens_outside_of_the_vocabulary_are_found() {
        let bytes = |tokens: &[i32]| {
            tokens
                .iter()
                .flat_map(|token| token.to_le_bytes())
                .collect::<Vec<u8>>()
        };
        assert_eq!(unknown_token(&bytes(&[0, 5, 9]), 10), None);
        assert_eq!(unknown_token(&bytes(&[0, 10, 11]), 10), Some(10));
        assert_eq!(unknown_token(&bytes(&[-1]), 10), Some(-1));
    }
}
