//! Waveforms with a transducer: a wrapper of engines for its three networks, as the reference's greedy decoder of RNN-T uses them. Frames are
//! made on the CPU; the encoder computes them piece by piece; then prediction and joint network take turns until each stream of the
//! batch has reached its end. The answer is the symbols.
//!
//! Everything is allocated when the networks are loaded.

mod features;
mod greedy;
mod stream;

use regatta_types::benchmark::{Model, Transducer};

use self::{features::FrameMaker, greedy::TransducerEngine};
use super::{
    Engine, EngineError, LoadRequest, Loaded, ModelMismatch,
    network::{Network as _, NetworkLayout},
    network_loader::{NetworkLoader, NetworkSource, float_input, integer, joined, states},
    waveform::inputs_fault,
};

/// Loads the three networks from `source`, and joins them stream by stream.
pub(super) fn load<S: NetworkSource>(
    request: &LoadRequest<'_>,
    transducer: &Transducer,
    source: &S,
) -> Result<Loaded, EngineError> {
    let loader = NetworkLoader { request, source };
    check(&request.benchmark.model, transducer).map_err(|reason| loader.unfit(reason))?;
    let maker = FrameMaker::new(&transducer.features, 0);
    let of_encoder = NetworkLayout {
        written: &[
            float_input("features", vec![transducer.frames, maker.width()]),
            float_input("valid", vec![transducer.frames]),
        ],
        kept: &states(&transducer.encoder_states),
        is_for_network: false,
        is_single_precision: false,
    };
    let (of_encoders, mut encoders) = loader.encoder(&of_encoder)?;
    let streams = encoders.first().map_or(1, |encoder| encoder.max_batch());
    let of_prediction = NetworkLayout {
        written: &[integer("symbol")],
        kept: &states(&transducer.prediction_states),
        is_for_network: false,
        is_single_precision: false,
    };
    let (of_predictions, mut predictions) = loader.decoder(1, &of_prediction, streams)?;
    let steps = transducer.frames / transducer.frames_per_step;
    let encoded = loader.probe(&mut encoders, steps, "encoder")? / steps;
    let predicted = loader.probe(&mut predictions, 1, "prediction network")?;
    let of_joint = NetworkLayout {
        written: &[
            float_input("encoded", vec![encoded]),
            float_input("predicted", vec![predicted]),
        ],
        kept: &[],
        is_for_network: false,
        is_single_precision: false,
    };
    let (of_joints, mut joints) = loader.decoder(2, &of_joint, streams)?;
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
        description: joined(of_encoders, [of_predictions, of_joints]),
        engines: engines.collect(),
        // The engines read frames, not samples.
        shared: None,
    })
}

/// Checks the numbers of a benchmark's file.
fn check(model: &Model, transducer: &Transducer) -> Result<(), ModelMismatch> {
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
        return Err(fault.into());
    }
    if sizes.contains(&0)
        || features.sample_rate == 0
        || !transducer.frames.is_multiple_of(transducer.frames_per_step)
        || !(1..=MAX_SYMBOLS).contains(&transducer.symbols)
        || !features.transform.is_multiple_of(2)
        || !(2..=features.transform).contains(&features.window)
    {
        return Err("[model.transducer] needs integer steps, 1 to 255 symbols, and a window of 2 values up to those of a transform".into());
    }
    Ok(())
}

/// Symbols are answered in a byte, and the blank follows them.
const MAX_SYMBOLS: usize = 255;
