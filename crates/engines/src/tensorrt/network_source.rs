//! Loads the networks of a model, each with a separate engine, for loops on GPUs. The loops that use the networks are elsewhere.

use std::path::{Path, PathBuf};

use regatta_tensorrt::{Model, Precision};
use regatta_types::documents::EngineKind;

use super::{
    calibration::has_scales,
    loaded_unit::{LoadedUnit, StreamPlace},
    machine::Machine,
    network::DeviceNetwork,
    network_setup::NetworkSetup,
    network_tensors::NetworkTensors,
    request::{TensorRtLoad, TensorRtRequest, Unit},
    tensors::Tensors,
};
use crate::{
    Description, EngineError, LoadRequest, ModelMismatch, network::NetworkLayout,
    network_loader::NetworkSource,
};

/// The networks of a model on the GPUs of a run.
pub(super) struct DeviceNetworks<'a> {
    machine: Machine,
    request: &'a TensorRtRequest,
}

/// What a request for several networks cannot have.
#[derive(Debug, thiserror::Error)]
enum UnfitRequest {
    #[error(
        "a model of several networks runs on GPUs, and DLA was requested; hint: leave out max_dlas, dla_core, no_gpu, dla_batch_size and dla_engine"
    )]
    Dla,
    #[error(
        "{} has no {name}, and each network needs its scales; hint: `calibration` names the directory with them", directory.display()
    )]
    NoScales { directory: PathBuf, name: String },
}

impl NetworkSource for DeviceNetworks<'_> {
    type Network = DeviceNetwork;

    fn load(
        &self,
        request: &LoadRequest<'_>,
        layout: &NetworkLayout<'_>,
        streams: Option<usize>,
    ) -> Result<(Description, Vec<DeviceNetwork>), EngineError> {
        let tensorrt = request_for_network(self.request, &request.model_file, layout)?;
        let request = LoadRequest {
            // The first network decides.
            takes_any_batch: request.takes_any_batch && streams.is_none(),
            image_sizes: request.image_sizes.clone(),
            volumes: request.volumes.clone(),
            sequences: request.sequences.clone(),
            model_file: request.model_file.clone(),
            ..*request
        };
        let of_device = TensorRtLoad {
            load: &request,
            tensorrt: &tensorrt,
        };
        let units = self.machine.units(of_device)?;
        let names = output_names(&request)?;
        let tensors = units.iter().map(|unit| {
            let requested = tensorrt.of(unit.unit).batch;
            check_batch(&unit.tensors[0], layout, requested, streams)
                .and_then(|()| NetworkTensors::of(&unit.tensors[0], layout, &names))
                .map_err(|reason| EngineError::ModelUnfit {
                    file: request.model_file.clone(),
                    benchmark: request.benchmark.name.clone(),
                    reason,
                })
        });
        let tensors = tensors.collect::<Result<Vec<_>, _>>()?;
        let networks = self.machine.streams(&units, &tensorrt, |unit, place| {
            let tensors = tensors[place.unit].clone();
            let setup = self.setup(unit, of_device, layout, tensors, place, streams);
            DeviceNetwork::new(&unit.context, &unit.engine, setup)
        });
        Ok((self.machine.describe(&tensorrt, &units), networks?))
    }
}

impl<'a> DeviceNetworks<'a> {
    /// Opens CUDA and TensorRT for the networks of a model.
    ///
    /// # Errors
    /// [`EngineError::Unavailable`] with what is missing.
    pub(super) fn open(request: &'a TensorRtRequest) -> Result<Self, EngineError> {
        let is_dla = |unit: &Unit| matches!(unit, Unit::Dla(_));
        if request.units().iter().any(is_dla) {
            return Err(EngineError::tensorrt_unavailable(UnfitRequest::Dla));
        }
        Ok(Self {
            machine: Machine::open(request)?,
            request,
        })
    }

    fn setup(
        &self,
        unit: &LoadedUnit,
        TensorRtLoad { load, tensorrt }: TensorRtLoad<'_>,
        layout: &NetworkLayout<'_>,
        tensors: NetworkTensors,
        place: StreamPlace,
        streams: Option<usize>,
    ) -> NetworkSetup {
        let batch = unit.tensors[0].batch;
        let requested = tensorrt.of(unit.unit).batch;
        let own = requested.map_or(batch, |requested| requested.min(batch)).max(1);
        let streams = streams.unwrap_or(own);
        let unit_name = tensorrt.name_of(unit.unit);
        let network = load.model_file.file_name().unwrap_or_default().display();
        NetworkSetup {
            unit: place.unit,
            unit_and_network: format!("{unit_name} with {network}"),
            unit_name,
            tensors,
            shape_is_free: unit.tensors[0].shape_is_free,
            profile: unit.profile(place.number),
            streams,
            rows: unit.tensors[0].rows(streams),
            inference: unit.inference_stream(place.number),
            graphs: tensorrt.graphs,
            graph_sizes: load
                .batch_sizes
                .iter()
                .copied()
                .filter(|&size| size <= streams)
                .collect(),
            is_direct: self.machine.is_direct(tensorrt),
            wait: tensorrt.wait,
            is_for_network: layout.is_for_network,
        }
    }
}

/// Checks that an engine has the batch of the other networks. What another network gets has a row for each row of a fixed batch.
fn check_batch(
    tensors: &Tensors,
    layout: &NetworkLayout<'_>,
    requested: Option<usize>,
    streams: Option<usize>,
) -> Result<(), ModelMismatch> {
    if let Some(streams) = streams.filter(|&streams| streams > tensors.batch) {
        return Err(format!(
            "its engine has a batch of {}, but that of its encoder has {streams}",
            tensors.batch
        )
        .into());
    }
    match requested {
        Some(requested) if layout.is_for_network && requested < tensors.least => Err(format!(
            "its engine has a fixed batch of {}, but {requested} was requested",
            tensors.least
        )
        .into()),
        _ => Ok(()),
    }
}

/// Returns the request for one network of a model. Types and formats of samples are not those of its inputs.
fn request_for_network(
    request: &TensorRtRequest,
    file: &Path,
    layout: &NetworkLayout<'_>,
) -> Result<TensorRtRequest, EngineError> {
    let is_reducible = !layout.is_single_precision;
    let calibration = request.calibration.as_deref().filter(|_| is_reducible);
    Ok(TensorRtRequest {
        precision: if is_reducible {
            request.precision
        } else {
            Some(Precision::AsInNetwork)
        },
        input_dtype: None,
        input_format: None,
        calibration: calibration.map(|path| scales_of(path, file)).transpose()?,
        ..request.clone()
    })
}

/// Returns the scales of a network in a directory: `encoder.cache` for `encoder.onnx`.
fn scales_of(directory: &Path, network: &Path) -> Result<PathBuf, EngineError> {
    let name = network.with_extension("cache");
    let name = name.file_name().unwrap_or_default();
    let scales = directory.join(name);
    if scales.is_file() && has_scales(&scales) {
        return Ok(scales);
    }
    Err(EngineError::calibration(UnfitRequest::NoScales {
        directory: directory.to_owned(),
        name: name.to_string_lossy().into_owned(),
    }))
}

/// Returns the names of a network's outputs, in the order of its file.
fn output_names(request: &LoadRequest<'_>) -> Result<Vec<String>, EngineError> {
    let model = Model::read(&request.model_file).map_err(|error| EngineError::ModelRefused {
        engine: EngineKind::Tensorrt,
        file: request.model_file.clone(),
        source: error.into(),
    })?;
    Ok(model.outputs().to_vec())
}
