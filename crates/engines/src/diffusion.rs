//! Captions with networks of latent diffusion: a wrapper of engines for text encoders, denoiser and image decoder, as the reference of Stable
//! Diffusion XL uses them. The text encoders compute both prompts once; the denoiser predicts the noise of each step, which is removed on the CPU;
//! then the image decoder makes the image. The answer is a byte for red, green and blue of each pixel.
//!
//! Everything is allocated when the networks are loaded.

mod engine;
mod latents;
mod schedule;

use regatta_types::benchmark::{CaptionInputs, Diffusion, FurtherInput};

use self::engine::{DiffusionEngine, DiffusionNetworks};
use super::{
    Description, Engine, EngineError, LoadRequest, Loaded,
    network::{KeptUpdate, Network as _, NetworkLayout},
    network_loader::{NetworkLoader, NetworkSource, float_input, int_input, joined, kept},
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
    let captions = request.benchmark.model.caption_inputs().ok_or_else(|| {
        loader.unfit(format!(
            "{SECTION} needs two inputs: the tokens for each text encoder, of int32 and one length, both with names"
        ))
    })?;
    if let Some(fault) = diffusion.fault(captions.length) {
        return Err(loader.unfit(format!("{SECTION}: {fault}")));
    }
    let latents = loader.file(LATENTS);
    let latents =
        latents::read(&latents, diffusion.latent_shape).map_err(|error| error.of(latents, request))?;
    let (about_texts, texts) = load_text_encoders(&loader, diffusion, captions)?;
    let streams = texts.first().map_or(1, |network| network.max_batch());
    let (about_denoisers, denoisers) = load_denoisers(&loader, diffusion, captions, streams)?;
    let (about_decoders, decoders) = load_image_decoders(&loader, diffusion, streams)?;
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
        Box::new(DiffusionEngine::new(
            diffusion,
            captions.length,
            networks,
            &latents,
        )) as Box<dyn Engine>
    });
    Ok(Loaded {
        description: joined(about_texts, [about_denoisers, about_decoders]),
        engines: engines.collect(),
        // The engines read pairs of prompts, not samples.
        shared: None,
    })
}

type LoadedNetworks<S> = (Description, Vec<<S as NetworkSource>::Network>);

fn load_text_encoders<S: NetworkSource>(
    loader: &NetworkLoader<'_, S>,
    diffusion: &Diffusion,
    captions: CaptionInputs<'_>,
) -> Result<LoadedNetworks<S>, EngineError> {
    let CaptionInputs { length, names } = captions;
    let layout = NetworkLayout {
        written: &names.map(|name| int_input(name, vec![2, length])),
        kept: &[],
        is_for_network: true,
        is_single_precision: false,
    };
    let (about, mut networks) = loader.encoder(&layout)?;
    let found = loader.probe(&mut networks, 1, "network of text encoders")?;
    loader.check_values("network of text encoders", found, diffusion.text_values(length))?;
    Ok((about, networks))
}

fn load_denoisers<S: NetworkSource>(
    loader: &NetworkLoader<'_, S>,
    diffusion: &Diffusion,
    captions: CaptionInputs<'_>,
    streams: usize,
) -> Result<LoadedNetworks<S>, EngineError> {
    let text_values = diffusion.text_values(captions.length);
    let layout = NetworkLayout {
        written: &[
            latent_input(diffusion),
            float_input("time", vec![diffusion.time_features]),
        ],
        kept: &[kept("text", vec![2, text_values / 2], KeptUpdate::Result)],
        is_for_network: false,
        is_single_precision: false,
    };
    let (about, mut networks) = loader.load_in_lockstep(1, &layout, streams)?;
    let found = loader.probe(&mut networks, 1, "denoiser")?;
    loader.check_values("denoiser", found, 2 * diffusion.latent_values())?;
    Ok((about, networks))
}

fn load_image_decoders<S: NetworkSource>(
    loader: &NetworkLoader<'_, S>,
    diffusion: &Diffusion,
    streams: usize,
) -> Result<LoadedNetworks<S>, EngineError> {
    let layout = NetworkLayout {
        written: &[latent_input(diffusion)],
        kept: &[],
        is_for_network: false,
        is_single_precision: true,
    };
    let (about, mut networks) = loader.load_in_lockstep(2, &layout, streams)?;
    let found = loader.probe(&mut networks, 1, "image decoder")?;
    loader.check_values("image decoder", found, diffusion.image_values())?;
    Ok((about, networks))
}

fn latent_input(diffusion: &Diffusion) -> FurtherInput {
    float_input("latent", diffusion.latent_shape.to_vec())
}
