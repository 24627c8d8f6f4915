//! Waveforms with an encoder and a decoder: a wrapper of engines for the two networks, as the reference of Whisper uses them. Features are made on
//! the CPU; the encoder computes them once; then the decoder finds token after token until each stream of the batch has reached its end.
//! The answer is the symbols of the tokens' text.
//!
//! `tract` is the only engine that is loaded so. Everything is allocated when the networks are loaded.

mod features;
mod greedy;
mod texts;
mod token_stream;

use std::sync::Arc;

use regatta_types::benchmark::{EncoderDecoder, NetworkState};

use self::{greedy::EncoderDecoderEngine, texts::TokenTexts};
use super::{
    Engine, EngineError, LoadRequest, Loaded,
    network_loader::{NetworkInputs, NetworkLoader, decoder_batch_sizes, floats, integer},
    waveform::inputs_fault,
};

const SECTION: &str = "[model.encoder_decoder]";
const NO_STATES: &[NetworkState] = &[];

/// Loads the engines of both networks with `load`, and joins them stream by stream.
pub(super) fn load(
    request: &LoadRequest<'_>,
    networks: &EncoderDecoder,
    load: impl Fn(&LoadRequest<'_>) -> Result<Loaded, EngineError>,
) -> Result<Loaded, EngineError> {
    let loader = NetworkLoader { request, load };
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
    let of_encoder = NetworkInputs {
        inputs: &[floats("features", vec![networks.features.bands, frames])],
        states: NO_STATES,
    };
    let (description, mut encoders) = loader.network(0, &of_encoder, request.batch_sizes)?;
    let steps = frames / networks.frames_per_step;
    let keys = 2 * networks.layers;
    let found = loader.probe(&mut encoders, steps, "encoder")?;
    let needed = keys * steps * networks.width;
    if found != needed {
        let reason =
            format!("its encoder has {found} values, but keys and values of {steps} steps have {needed}");
        return Err(loader.unfit(reason));
    }
    let most = encoders.first().map_or(1, |encoder| encoder.engine().max_batch());
    let shape = |positions: usize| vec![networks.layers, 2, positions, networks.width];
    let of_decoder = NetworkInputs {
        inputs: &[
            integer("token"),
            integer("position"),
            floats("cache", shape(networks.positions())),
            floats("cross", shape(steps)),
        ],
        states: NO_STATES,
    };
    let (_, mut decoders) = loader.network(1, &of_decoder, &decoder_batch_sizes(most))?;
    let found = loader.probe(&mut decoders, 1, "decoder")?;
    let needed = networks.vocabulary + keys * networks.width;
    if found != needed {
        let reason = format!(
            "its decoder has {found} values, but scores of {} tokens and the keys and values of a position have {needed}",
            networks.vocabulary
        );
        return Err(loader.unfit(reason));
    }
    let engines = encoders.into_iter().zip(decoders).map(|pair| {
        let engine = EncoderDecoderEngine::new(model, networks, pair, Arc::clone(&texts));
        Box::new(engine) as Box<dyn Engine>
    });
    Ok(Loaded {
        description,
        engines: engines.collect(),
        // The engines read features, not samples.
        shared: None,
    })
}
