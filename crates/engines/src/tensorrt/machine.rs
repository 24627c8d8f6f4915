//! CUDA and TensorRT, opened for the units of a run. Loads the engines of a model for them; contexts and memory are made elsewhere.

use std::{error::Error, iter};

use regatta_cuda::Context;
use regatta_fsutil::regular_file::{self, MAX_TEXT};
use regatta_tensorrt::{Model, ModelError, Scale, TensorRt, plugin_hashes};
use regatta_types::{
    benchmark::Dtype,
    documents::{Document as _, EngineKind},
    samples::SampleSet,
};

use super::{
    calibration, choice, gpus,
    loaded_unit::{LoadedUnit, StreamPlace},
    request::{TensorRtLoad, TensorRtRequest},
};
use crate::{Description, EngineError, LoadRequest, chip::chip, fixed_batch, model_file};

/// CUDA and TensorRT with the plug-ins of a run.
pub(super) struct Machine {
    /// Those of the GPUs, at least one.
    contexts: Vec<Context>,
    tensorrt: TensorRt,
}

impl Machine {
    /// Opens CUDA and TensorRT, and loads the plug-ins.
    ///
    /// # Errors
    /// [`EngineError::Unavailable`] with what is missing.
    pub(super) fn open(request: &TensorRtRequest) -> Result<Self, EngineError> {
        let contexts = gpus::open(&request.gpus, &request.installation.driver()?)?;
        let tensorrt = request.installation.tensorrt()?;
        for plugins in &request.plugins {
            let loaded = tensorrt.load_plugins(plugins);
            loaded.map_err(EngineError::tensorrt_unavailable)?;
        }
        Ok(Self { contexts, tensorrt })
    }

    /// Returns the context of the first GPU.
    pub(super) fn first(&self) -> &Context {
        &self.contexts[0]
    }

    /// Returns whether the device works in host memory.
    pub(super) fn is_direct(&self, request: &TensorRtRequest) -> bool {
        request
            .direct_host_access
            .unwrap_or(self.first().device().integrated)
    }

    /// Selects and loads the engine of each unit.
    ///
    /// # Errors
    /// [`EngineError`] when an engine is missing or does not fit.
    pub(super) fn units(&self, request: TensorRtLoad<'_>) -> Result<Vec<LoadedUnit>, EngineError> {
        let tensorrt = request.tensorrt;
        let network = network_file(request.load)?;
        let here = choice::Here {
            fixed_batch: network.fixed_batch,
            has_free_dims: network.has_free_dims,
            onnx_sha256: network.sha256,
            calibration: tensorrt
                .calibration
                .as_deref()
                .map(calibration::sha256_of)
                .transpose()
                .map_err(EngineError::calibration)?,
            input_scale: samples_scale(request),
            plugins: plugin_hashes(&tensorrt.plugins).map_err(EngineError::tensorrt_unavailable)?,
            tensorrt: self.tensorrt.version(),
            chip: chip(Some(self.first().device())),
        };
        warn_of_fixed_batch(request, network.fixed_batch);
        // DLA cores belong to the chip of the first GPU.
        let of_gpus = self.contexts.iter().chain(iter::repeat(self.first()));
        let units = tensorrt.units().into_iter().zip(of_gpus);
        units
            .map(|(unit, context)| LoadedUnit::new(unit, request, &here, &self.tensorrt, context))
            .collect()
    }

    /// Calls `make` for each stream of the units, in rounds: first one per unit, then the second streams, and so on.
    ///
    /// # Errors
    /// [`EngineError::Stream`] with the error of `make`.
    pub(super) fn streams<T>(
        &self,
        units: &[LoadedUnit],
        request: &TensorRtRequest,
        make: impl Fn(&LoadedUnit, StreamPlace) -> Result<T, Box<dyn Error + Send + Sync>>,
    ) -> Result<Vec<T>, EngineError> {
        let most = units.iter().map(|unit| unit.streams).max().unwrap_or(0);
        let mut made = Vec::new();
        for number in 0..most {
            for (position, unit) in units.iter().enumerate().filter(|(_, unit)| number < unit.streams) {
                let place = StreamPlace {
                    unit: position,
                    number,
                };
                let failed = |source| EngineError::Stream {
                    stream: number + 1,
                    unit: request.name_of(unit.unit),
                    needed: unit.engine.context_bytes(),
                    free: unit.context.memory().map_or(0, |(free, _)| free as u64),
                    source,
                };
                made.push(make(unit, place).map_err(failed)?);
            }
        }
        Ok(made)
    }

    /// Describes the engines of the units.
    pub(super) fn describe(&self, request: &TensorRtRequest, units: &[LoadedUnit]) -> Description {
        let unused_dla = request.unused_dla.iter();
        let unused_dla = unused_dla.map(|reason| format!("without DLA, which was requested: {reason}"));
        let descriptions = units.iter().map(|unit| unit.describe(request)).chain(unused_dla);
        let driver = self.first().driver().version();
        let access = if self.is_direct(request) {
            "in host memory"
        } else {
            "by copies"
        };
        Description {
            kind: EngineKind::Tensorrt,
            version: self.tensorrt.version().to_string(),
            runs_on: format!(
                "{} (CUDA {}.{}, {access}; {})",
                gpus::describe(&self.contexts),
                driver / 1000,
                driver % 1000 / 10,
                descriptions.collect::<Vec<_>>().join("; ")
            ),
        }
    }
}

/// Returns the scale of a run's samples, if they are 8-bit integers that `regatta prep` made.
fn samples_scale(request: TensorRtLoad<'_>) -> Option<Scale> {
    let benchmark = request.load.benchmark;
    if benchmark.model.input_dtype != Dtype::Int8 {
        return None;
    }
    let directory = request.tensorrt.scratch.join(&benchmark.dataset.dir);
    // The harness refuses samples whose document cannot be read.
    let document = regular_file::read(&directory.join(SampleSet::FILE), MAX_TEXT).ok()?;
    let set = SampleSet::from_json(&document).ok()?;
    Scale::new(set.quantised?.scale)
}

/// What is known of a network without TensorRT.
struct NetworkFile {
    /// The hash that identifies the model in manifests. It covers the benchmark's file and the weight files that it names.
    sha256: String,
    /// The batch, if it is not free.
    fixed_batch: Option<usize>,
    /// Whether the samples' input has other free dimensions.
    has_free_dims: bool,
}

fn network_file(request: &LoadRequest<'_>) -> Result<NetworkFile, EngineError> {
    let refused = |error: ModelError| EngineError::ModelRefused {
        engine: EngineKind::Tensorrt,
        file: request.model_file.clone(),
        source: error.into(),
    };
    let own = model_file::checked_hash(request)?;
    let model = Model::read(&request.model_file).map_err(refused)?;
    let input = request.benchmark.model.input_name.as_deref();
    let (batch, others) = match model.input_dims(input) {
        Some([batch, others @ ..]) => (*batch, others),
        _ => (None, &[][..]),
    };
    Ok(NetworkFile {
        fixed_batch: batch
            .and_then(|batch| usize::try_from(batch).ok())
            .filter(|&batch| batch > 0),
        has_free_dims: others.contains(&None),
        sha256: model.sha256_with(own).map_err(refused)?,
    })
}

/// Warns if the run's batches are larger than the network's.
fn warn_of_fixed_batch(request: TensorRtLoad<'_>, fixed: Option<usize>) {
    let units = request.tensorrt.units().into_iter();
    let largest = units
        .map(|unit| choice::requested_batch(request.load, request.tensorrt.of(unit)))
        .max();
    if let (Some(fixed), Some(largest)) = (fixed, largest)
        && fixed < largest
    {
        fixed_batch::warn(&request.load.model_file, fixed, largest);
    }
}
