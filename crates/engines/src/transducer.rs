//! Waveforms with a transducer: a wrapper of engines for its three networks, as the reference's greedy decoder of RNN-T uses them. Frames are
//! made on the CPU; the encoder computes them piece by piece; then prediction and joint network take turns until each stream of the
//! batch has reached its end. The answer is the symbols.
//!
//! `tract` is the only engine that is loaded so. Everything is allocated when the networks are loaded.

mod features;
mod greedy;
mod stream;

use regatta_types::benchmark::{Model, NetworkState, Transducer};

use self::{features::FrameMaker, greedy::TransducerEngine};
use super::{
    Engine, EngineError, LoadRequest, Loaded,
    network_loader::{NetworkInputs, NetworkLoader, decoder_batch_sizes, floats, integer},
    waveform::inputs_fault,
};

/// Loads the engines of the three networks with `load`, and joins them stream by stream.
pub(super) fn load(
    request: &LoadRequest<'_>,
    transducer: &Transducer,
    load: impl Fn(&LoadRequest<'_>) -> Result<Loaded, EngineError>,
) -> Result<Loaded, EngineError> {
    let loader = NetworkLoader { request, load };
    check(&request.benchmark.model, transducer).map_err(|reason| loader.unfit(reason))?;
    let maker = FrameMaker::new(&transducer.features, 0);
    let of_encoder = NetworkInputs {
        inputs: &[
            floats("features", vec![transducer.frames, maker.width()]),
            floats("valid", vec![transducer.frames]),
        ],
        states: &transducer.encoder_states,
    };
    let (description, mut encoders) = loader.network(0, &of_encoder, request.batch_sizes)?;
    let most = encoders.first().map_or(1, |encoder| encoder.engine().max_batch());
    // Streams do not speak at the same time, either.
    let sizes = decoder_batch_sizes(most);
    let of_prediction = NetworkInputs {
        inputs: &[integer("symbol")],
        states: &transducer.prediction_states,
    };
    let (_, mut predictions) = loader.network(1, &of_prediction, &sizes)?;
    let steps = transducer.frames / transducer.frames_per_step;
    let encoded = loader.probe(&mut encoders, steps, "encoder")? / steps;
    let predicted = loader.probe(&mut predictions, 1, "prediction network")?;
    let of_joint = NetworkInputs {
        inputs: &[
            floats("encoded", vec![encoded]),
            floats("predicted", vec![predicted]),
        ],
        states: &[] as &[NetworkState],
    };
    let (_, mut joints) = loader.network(2, &of_joint, &sizes)?;
    let scores = loader.probe(&mut joints, 1, "joint network")?;
    if scores != transducer.symbols + 1 {
        return Err(loader.unfit(format!(
            "its joint network has {scores} scores, but {} symbols and the blank are needed",
            transducer.symbols
        )));
    }
    let engines = encoders.into_iter().zip(predictions).zip(joints);
    let engines = engines.map(|((encoder, prediction), joint)| {
        let engine = TransducerEngine::new(request, transducer, [encoder, prediction, joint], encoded);
        Box::new(engine) as Box<dyn Engine>
    });
    Ok(Loaded {
        description,
        engines: engines.collect(),
        // The engines read frames, not samples.
        shared: None,
    })
}

/// Checks the numbers of a benchmark's file.
fn check(model: &Model, transducer: &Transducer) -> Result<(), String> {
    let features = &transducer.features;
    let sizes = [
        features.hop,
        features.bands,
        features.splice,
        transducer.symbols_per_step,
        transducer.frames_per_step,
        transducer.frames,
    ];
    if let Some(fault) = inputs_fault(model, "[model.transducer]") {
        return Err(fault);
    }
    if sizes.contains(&0)
        || features.sample_rate == 0
        || !transducer.frames.is_multiple_of(transducer.frames_per_step)
        || !(1..=MOST_SYMBOLS).contains(&transducer.symbols)
        || !features.transform.is_multiple_of(2)
        || !(2..=features.transform).contains(&features.window)
    {
        return Err("[model.transducer] needs whole steps, 1 to 255 symbols, and a window of 2 values up to those of a transform".to_owned());
    }
    Ok(())
}

/// Symbols are answered in a byte, and the blank follows them.
const MOST_SYMBOLS: usize = 255;
