//! Captions with networks of latent diffusion: a wrapper of engines for text encoders, denoiser and image decoder, as the reference of Stable
//! Diffusion XL uses them. The text encoders compute both prompts once; the denoiser predicts the noise of each step, which is removed on the CPU;
//! then the image decoder makes the image. The answer is a byte for red, green and blue of each pixel.
//!
//! Everything is allocated when the networks are loaded.

mod engine;
mod latents;
mod schedule;

use regatta_types::benchmark::{Diffusion, Dtype, Model};

use self::engine::{DiffusionEngine, DiffusionNetworks};
use super::{
    Engine, EngineError, LoadRequest, Loaded,
    network::{KeptUpdate, Network as _, NetworkLayout},
    network_loader::{NetworkLoader, NetworkSource, floats, integers, joined, kept},
};

const SECTION: &str = "[model.diffusion]";
/// The number of the latents among the files of the model.
const LATENTS: usize = 3;

/// Loads the three networks from `source`, and joins them stream by stream.
pub(super) fn load<S: NetworkSource>(
    request: &LoadRequest<'_>,
    diffusion: &Diffusion,
    source: &S,
) -> Result<Loaded, EngineError> {
    let loader = NetworkLoader { request, source };
    let tokens = tokens(&request.benchmark.model).ok_or_else(|| {
        loader.unfit(format!(
            "{SECTION} needs two inputs: the tokens for each text encoder, of int32 and one length"
        ))
    })?;
    if let Some(fault) = diffusion.fault(tokens) {
        return Err(loader.unfit(format!("{SECTION}: {fault}")));
    }
    let latents = loader.file(LATENTS);
    let latents =
        latents::read(&latents, diffusion.latent_shape).map_err(|error| error.of(latents, request))?;
    let text_values = diffusion.text_values(tokens);
    let of_texts = NetworkLayout {
        written: &[
            integers("input_ids", vec![2, tokens]),
            integers("input_ids_2", vec![2, tokens]),
        ],
        kept: &[],
        is_for_network: true,
        is_single_precision: false,
    };
    let (about_texts, mut texts) = loader.encoder(&of_texts)?;
    let found = loader.probe(&mut texts, 1, "network of text encoders")?;
    loader.check_values("network of text encoders", found, text_values)?;
    let streams = texts.first().map_or(1, |network| network.max_batch());
    let latent = floats("latent", diffusion.latent_shape.to_vec());
    let of_denoiser = NetworkLayout {
        written: &[latent.clone(), floats("time", vec![diffusion.time_features])],
        kept: &[kept("text", vec![2, text_values / 2], KeptUpdate::Result)],
        is_for_network: false,
        is_single_precision: false,
    };
    let (about_denoisers, mut denoisers) = loader.in_step(1, &of_denoiser, streams)?;
    let found = loader.probe(&mut denoisers, 1, "denoiser")?;
    loader.check_values("denoiser", found, 2 * diffusion.latent_values())?;
    let of_decoder = NetworkLayout {
        written: &[latent],
        kept: &[],
        is_for_network: false,
        is_single_precision: true,
    };
    let (about_decoders, mut decoders) = loader.in_step(2, &of_decoder, streams)?;
    let found = loader.probe(&mut decoders, 1, "image decoder")?;
    loader.check_values("image decoder", found, diffusion.image_values())?;
    let mut pairs = texts.iter().zip(&denoisers);
    if pairs.any(|(text, denoiser)| !text.fits_into(denoiser)) {
        return Err(loader.unfit(
            "the result of its text encoders does not have the type or size of the denoiser's input text"
                .to_owned(),
        ));
    }
    let networks = texts.into_iter().zip(denoisers).zip(decoders);
    let engines = networks.map(|((texts, denoiser), image_decoder)| {
        let networks = DiffusionNetworks {
            texts,
            denoiser,
            image_decoder,
        };
        Box::new(DiffusionEngine::new(diffusion, tokens, networks, &latents)) as Box<dyn Engine>
    });
    Ok(Loaded {
        description: joined(about_texts, [about_denoisers, about_decoders]),
        engines: engines.collect(),
        // The engines read pairs of prompts, not samples.
        shared: None,
    })
}

/// Returns the number of tokens of a caption, if the model's inputs are tokens for two text encoders.
fn tokens(model: &Model) -> Option<usize> {
    let inputs: Vec<_> = model.inputs().collect();
    let [first, second] = &inputs[..] else {
        return None;
    };
    let are_tokens =
        first.dtype == Dtype::Int32 && second.dtype == Dtype::Int32 && first.shape == second.shape;
    match first.shape {
        [tokens] if are_tokens => Some(*tokens),
        _ => None,
    }
}
