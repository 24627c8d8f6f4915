//! Waveforms with an encoder and a decoder: a wrapper of engines for the two networks, as the reference of Whisper uses them. Features are made on
//! the CPU; the encoder computes them once; then the decoder finds token after token until each stream of the batch has reached its end.
//! The answer is the symbols of the tokens' text.
//!
//! Everything is allocated when the networks are loaded.

mod features;
mod greedy;
mod texts;
mod token_stream;

use std::sync::Arc;

use regatta_types::benchmark::EncoderDecoder;

pub(crate) use self::texts::push_symbols;
use self::{greedy::EncoderDecoderEngine, texts::TokenTexts};
use super::{
    Engine, EngineError, LoadRequest, Loaded,
    network::{KeptUpdate, Network as _, NetworkLayout},
    network_loader::{NetworkLoader, NetworkSource, float_input, integer, joined, kept},
    waveform::inputs_fault,
};

const SECTION: &str = "[model.encoder_decoder]";

/// Loads both networks from `source`, and joins them stream by stream.
pub(super) fn load<S: NetworkSource>(
    request: &LoadRequest<'_>,
    networks: &EncoderDecoder,
    source: &S,
) -> Result<Loaded, EngineError> {
    let loader = NetworkLoader { request, source };
    let model = &request.benchmark.model;
    if let Some(fault) = inputs_fault(model, SECTION) {
        return Err(loader.unfit(fault));
    }
    let values = model.input_shape[0];
    if let Some(fault) = networks.fault(values) {
        return Err(loader.unfit(format!("{SECTION}: {fault}")));
    }
    let texts = loader.file(2);
    let texts = TokenTexts::read(&texts, networks.vocabulary).map_err(|error| error.of(texts, request))?;
    let texts = Arc::new(texts);
    let frames = values / networks.features.hop;
    let of_encoder = NetworkLayout {
        written: &[float_input("features", vec![networks.features.bands, frames])],
        kept: &[],
        is_for_network: true,
        is_single_precision: false,
    };
    let (of_encoders, mut encoders) = loader.encoder(&of_encoder)?;
    let steps = frames / networks.frames_per_step;
    let keys = 2 * networks.layers;
    let found = loader.probe(&mut encoders, steps, "encoder")?;
    let needed = keys * steps * networks.width;
    if found != needed {
        let reason =
            format!("its encoder has {found} values, but keys and values of {steps} steps have {needed}");
        return Err(loader.unfit(reason));
    }
    let streams = encoders.first().map_or(1, |encoder| encoder.max_batch());
    let shape = |positions: usize| vec![networks.layers, 2, positions, networks.width];
    let of_decoder = NetworkLayout {
        written: &[integer("token"), integer("position")],
        kept: &[
            kept("cache", shape(networks.positions()), KeptUpdate::Row),
            kept("cross", shape(steps), KeptUpdate::Result),
        ],
        is_for_network: false,
        is_single_precision: false,
    };
    let (of_decoders, mut decoders) = loader.decoder(1, &of_decoder, streams)?;
    let found = loader.probe(&mut decoders, 1, "decoder")?;
    if found != networks.vocabulary {
        let reason = format!(
            "its decoder has {} values, but scores of {} tokens and the keys and values of a position have {}",
            found + keys * networks.width,
            networks.vocabulary,
            networks.vocabulary + keys * networks.width
        );
        return Err(loader.unfit(reason));
    }
    if encoders
        .iter()
        .zip(&decoders)
        .any(|(encoder, decoder)| !encoder.fits_into(decoder))
    {
        return Err(loader.unfit(
            "its encoder's result does not have the type or size of the decoder's input cross".to_owned(),
        ));
    }
    let engines = encoders.into_iter().zip(decoders).map(|pair| {
        let engine = EncoderDecoderEngine::new(model, networks, pair, Arc::clone(&texts));
        Box::new(engine) as Box<dyn Engine>
    });
    Ok(Loaded {
        description: joined(of_encoders, [of_decoders]),
        engines: engines.collect(),
        // The engines read features, not samples.
        shared: None,
    })
}
