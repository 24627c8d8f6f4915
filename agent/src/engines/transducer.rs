//! Waveforms with a transducer: a wrapper of engines for its three networks, as the reference's greedy decoder of RNN-T uses them. Frames are
//! made on the CPU; the encoder computes them piece by piece; then prediction and joint network take turns until each stream of the
//! batch has reached its end. The answer is the symbols.
//!
//! The engines may be of any kind. Everything is allocated when they are loaded.

mod features;
mod greedy;
mod network;
mod stream;

use std::sync::Arc;

use regatta_types::benchmark::{Dtype, FurtherInput, Model, NetworkState, Transducer};

use self::{
    features::FrameMaker,
    greedy::TransducerEngine,
    network::{FLOAT, Network, description},
};
use super::{Engine, EngineError, LoadRequest, Loaded};

/// Loads the engines of the three networks with `load_network`, and joins them stream by stream.
pub(super) fn load(
    request: &LoadRequest<'_>,
    transducer: &Transducer,
    load_network: impl Fn(&LoadRequest<'_>) -> Result<Loaded, EngineError>,
) -> Result<Loaded, EngineError> {
    let unfit = |reason: String| EngineError::ModelUnfit {
        file: request.model_file.clone(),
        benchmark: request.benchmark.name.clone(),
        reason,
    };
    check(&request.benchmark.model, transducer).map_err(|reason| unfit(reason.to_owned()))?;
    let files = request.benchmark.model.files();
    let load = |number: usize, inputs: &[FurtherInput], states: &[NetworkState], batch_sizes: &[usize]| {
        let file = files[number].clone();
        let name = file.rsplit('/').next().unwrap_or_default();
        let benchmark = description(request.benchmark, file.clone(), inputs, states);
        let loaded = load_network(&LoadRequest {
            benchmark: &benchmark,
            image_sizes: Arc::default(),
            volumes: Arc::default(),
            sequences: Arc::default(),
            model_file: request.model_file.with_file_name(name),
            batch_sizes,
            ..*request
        })?;
        let most = batch_sizes.iter().copied().max().unwrap_or(1);
        let network = |engine: Box<dyn Engine>| {
            let streams = most.max(engine.max_batch());
            Network::new(engine, &benchmark, states, streams)
        };
        let networks: Vec<Network> = loaded.engines.into_iter().map(network).collect();
        Ok::<_, EngineError>((loaded.description, networks))
    };
    let maker = FrameMaker::new(&transducer.features, 0);
    let of_encoder = [
        floats("features", vec![transducer.frames, maker.width()]),
        floats("valid", vec![transducer.frames]),
    ];
    let (description, mut encoders) = load(0, &of_encoder, &transducer.encoder_states, request.batch_sizes)?;
    let most = encoders.first().map_or(1, |encoder| encoder.engine().max_batch());
    // Streams end one by one, and do not speak at the same time.
    let sizes: Vec<usize> = std::iter::successors(Some(1), |size| Some(size * 2))
        .take_while(|&size| size < most)
        .chain([most])
        .collect();
    let symbol = FurtherInput {
        name: "symbol".to_owned(),
        shape: Vec::new(),
        dtype: Dtype::Int32,
    };
    let (_, mut predictions) = load(1, &[symbol], &transducer.prediction_states, &sizes)?;
    let width = |networks: &mut [Network], steps: usize, what: &str| {
        let found = networks.first_mut().map_or(Ok(Ok(0)), Network::probe)?;
        let bytes = found
            .ok()
            .filter(|bytes| *bytes > 0 && bytes.is_multiple_of(steps * FLOAT));
        let reason = || {
            format!("the result of its {what} is no float32 of {steps} steps, or its states do not follow it")
        };
        bytes
            .map(|bytes| bytes / steps / FLOAT)
            .ok_or_else(|| unfit(reason()))
    };
    let encoded = width(
        &mut encoders,
        transducer.frames / transducer.frames_per_step,
        "encoder",
    )?;
    let predicted = width(&mut predictions, 1, "prediction network")?;
    let of_joint = [
        floats("encoded", vec![encoded]),
        floats("predicted", vec![predicted]),
    ];
    let (_, mut joints) = load(2, &of_joint, &[], &sizes)?;
    let scores = width(&mut joints, 1, "joint network")?;
    if scores != transducer.symbols + 1 {
        return Err(unfit(format!(
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

fn floats(name: &str, shape: Vec<usize>) -> FurtherInput {
    FurtherInput {
        name: name.to_owned(),
        shape,
        dtype: Dtype::Float32,
    }
}

/// Checks the numbers of a benchmark's file.
fn check(model: &Model, transducer: &Transducer) -> Result<(), &'static str> {
    let features = &transducer.features;
    let sizes = [
        features.hop,
        features.bands,
        features.splice,
        transducer.symbols_per_step,
        transducer.frames_per_step,
        transducer.frames,
    ];
    let inputs: Vec<_> = model.inputs().collect();
    let [waveform, length] = &inputs[..] else {
        return Err("[model.transducer] needs two inputs: a waveform and its length");
    };
    let is_waveform = waveform.shape.len() == 1 && matches!(waveform.dtype, Dtype::Float32 | Dtype::Float16);
    if !is_waveform || !length.shape.is_empty() || length.dtype != Dtype::Int32 {
        return Err("[model.transducer] needs a waveform of float32 or float16, and its length as int32");
    }
    if sizes.contains(&0)
        || features.sample_rate == 0
        || !transducer.frames.is_multiple_of(transducer.frames_per_step)
        || !(1..=MOST_SYMBOLS).contains(&transducer.symbols)
        || !features.transform.is_multiple_of(2)
        || !(2..=features.transform).contains(&features.window)
    {
        return Err(
            "[model.transducer] needs whole steps, 1 to 255 symbols, and a window of 2 values up to those of a transform",
        );
    }
    Ok(())
}

/// Symbols are answered in a byte, and the blank follows them.
const MOST_SYMBOLS: usize = 255;
