//! The request of a run to TensorRT, derived from settings, scenario and directories.

use std::{
    env,
    path::{Path, PathBuf},
};

use regatta_cuda::WaitMode;
use regatta_tensorrt::Precision;
use regatta_types::engine_settings::{EngineBuild, EnginePrecision, EngineSettings};
use regatta_types::{Scenario, benchmark::Model};

use super::{BuildOptions, Graphs, Installation, TensorRtRequest, UnitRequest};
use crate::EngineRequest;

/// Default directory of `engine build`.
pub const ENGINES: &str = "engines";
/// Number of DLA cores when a setting mentions DLA without a number: the most that any Jetson has.
const ALL_DLAS: usize = 2;

/// Samples of a MultiStream query in every round since v2.0.
const QUERY_SAMPLES: usize = 8;

/// Returns the request of a run. If the model sees samples in sliding windows, batches are of windows.
pub(super) fn request(request: &EngineRequest<'_>) -> TensorRtRequest {
    let &EngineRequest {
        settings,
        scenario,
        model,
        scratch,
        ..
    } = request;
    let has_windows = model.windows.is_some();
    let gpus = settings.gpus.clone().unwrap_or_default();
    let latency = matches!(scenario, Scenario::SingleStream | Scenario::MultiStream);
    let without_gpu = without_gpu(settings);
    // A query of SingleStream occupies one unit.
    let mut dla_cores = dla_cores(settings);
    if scenario == Scenario::SingleStream {
        dla_cores.truncate(usize::from(without_gpu));
    }
    let gpu_streams = usize::from(!without_gpu);
    // A calibration without a precision is one of int8 engines.
    let of_calibration = settings.calibration.as_ref().map(|_| EnginePrecision::Int8);
    let precision = settings.precision.or(of_calibration);
    TensorRtRequest {
        installation: Installation::of_this_machine(),
        scratch: scratch.unwrap_or(Path::new("")).to_owned(),
        cache: engine_cache(scratch),
        builds_missing: settings.engine_build != Some(EngineBuild::Never),
        plugins: plugin_libraries(settings, model, scratch),
        precision: precision.map(|precision| match precision {
            EnginePrecision::AsInNetwork => Precision::AsInNetwork,
            EnginePrecision::Fp16 => Precision::Fp16,
            EnginePrecision::Int8 => Precision::Int8,
        }),
        calibration: calibration_path(settings, scratch).filter(|_| precision == Some(EnginePrecision::Int8)),
        build: BuildOptions::new(settings),
        exact_batch: settings.exact_batch == Some(true),
        // Each value of the setting is a value of that type.
        input_dtype: settings.input_dtype.and_then(|dtype| dtype.as_str().parse().ok()),
        input_format: settings.input_format,
        gpus: match scenario {
            // SingleStream uses one GPU.
            Scenario::SingleStream => gpus.first(),
            _ => gpus,
        },
        gpu: unit_request(
            &UnitSettings::of_gpu(settings),
            settings,
            gpu_streams,
            scenario,
            has_windows,
        ),
        dla: unit_request(
            &UnitSettings::of_dla(settings),
            settings,
            1,
            scenario,
            has_windows,
        ),
        dla_cores,
        unused_dla: None,
        dla_loops: settings.dla_enqueue_count.unwrap_or(1),
        graphs: match settings.use_graphs {
            Some(true) => Graphs::Requested,
            Some(false) => Graphs::Never,
            None if latency => Graphs::Default,
            None => Graphs::Never,
        },
        direct_host_access: settings.use_direct_host_access,
        wait: if settings.use_spin_wait == Some(true) {
            WaitMode::Spin
        } else {
            WaitMode::Block
        },
    }
}

/// Returns the calibration samples or scales that the settings name.
pub fn calibration_path(settings: &EngineSettings, scratch: Option<&Path>) -> Option<PathBuf> {
    let path = &settings.calibration.as_ref()?.0;
    Some(scratch.unwrap_or(Path::new("")).join(path))
}

/// Returns the libraries with TensorRT plug-ins that the benchmark's model and the settings name.
pub fn plugin_libraries(settings: &EngineSettings, model: &Model, scratch: Option<&Path>) -> Vec<PathBuf> {
    let further = settings.tensorrt_plugins.iter().flat_map(|paths| &paths.0);
    let plugins = model.tensorrt_plugins.iter().chain(further);
    plugins
        .map(|path| scratch.unwrap_or(Path::new("")).join(path))
        .collect()
}

/// The settings of one kind of unit.
struct UnitSettings<'a> {
    engine: Option<&'a str>,
    batch_size: Option<usize>,
    copy_streams: Option<usize>,
    inference_streams: Option<usize>,
}

impl<'a> UnitSettings<'a> {
    fn of_gpu(settings: &'a EngineSettings) -> Self {
        Self {
            engine: settings.gpu_engine.as_deref(),
            batch_size: settings.gpu_batch_size,
            copy_streams: settings.gpu_copy_streams,
            inference_streams: settings.gpu_inference_streams,
        }
    }

    fn of_dla(settings: &'a EngineSettings) -> Self {
        Self {
            engine: settings.dla_engine.as_deref(),
            batch_size: settings.dla_batch_size,
            copy_streams: settings.dla_copy_streams,
            inference_streams: settings.dla_inference_streams,
        }
    }
}

/// Returns the request for one kind of unit. `usual` is the default number of streams.
fn unit_request(
    unit: &UnitSettings<'_>,
    settings: &EngineSettings,
    usual: usize,
    scenario: Scenario,
    has_windows: bool,
) -> UnitRequest {
    let streams = unit.copy_streams.or(settings.inference_streams).unwrap_or(1);
    UnitRequest {
        engine: unit.engine.map(str::to_owned),
        batch: match scenario {
            // Also a single sample has many windows.
            _ if has_windows => unit.batch_size.or(settings.window_batch),
            Scenario::SingleStream => Some(1),
            _ => unit.batch_size.or(settings.batch_size),
        },
        streams: match scenario {
            // A query of these scenarios has no successor for a second stream, but it may have several batches.
            Scenario::SingleStream => usual,
            Scenario::MultiStream => usual * streams.min(batches_of_query(unit, settings)),
            Scenario::Server | Scenario::Offline => usual * streams,
        },
        inference_streams: if settings.run_infer_on_copy_streams == Some(true) {
            0
        } else {
            unit.inference_streams.unwrap_or(0)
        },
    }
}

/// Returns the number of batches of a MultiStream query. A batch without a set size has the complete query.
fn batches_of_query(unit: &UnitSettings<'_>, settings: &EngineSettings) -> usize {
    let batch = unit.batch_size.or(settings.batch_size);
    batch.map_or(1, |batch| QUERY_SAMPLES.div_ceil(batch.max(1)))
}

/// Returns whether DLA cores compute alone. A named core does, as in NVIDIA's harness.
fn without_gpu(settings: &EngineSettings) -> bool {
    settings.no_gpu == Some(true) || settings.dla_core.is_some()
}

/// Returns the DLA cores that the settings mention. Empty if no setting mentions DLA.
fn dla_cores(settings: &EngineSettings) -> Vec<u32> {
    let spoken_of =
        settings.dla_batch_size.is_some() || settings.dla_engine.is_some() || without_gpu(settings);
    let count = settings.max_dlas.unwrap_or(if spoken_of { ALL_DLAS } else { 0 });
    let number = |core: usize| u32::try_from(core).unwrap_or(u32::MAX);
    match settings.dla_core {
        Some(core) => vec![number(core)],
        None => (0..count).map(number).collect(),
    }
}

/// Returns `REGATTA_ENGINES`, or `engines` in the current directory if it exists, otherwise `engines` below the scratch
/// directory.
pub fn engine_cache(scratch: Option<&Path>) -> PathBuf {
    let named = env::var_os("REGATTA_ENGINES").filter(|value| !value.is_empty());
    let here = || Some(PathBuf::from(ENGINES)).filter(|place| place.is_dir());
    named
        .map(PathBuf::from)
        .or_else(here)
        .unwrap_or_else(|| scratch.unwrap_or(Path::new("")).join(ENGINES))
}

#[cfg(test)]
mod tests {
    use regatta_test_support::fixture::Fixture;

    use super::*;

    fn of(settings: EngineSettings, scenario: Scenario) -> TensorRtRequest {
        request(&EngineRequest {
            settings: &settings,
            scenario,
            model: &Fixture::new().benchmark().model,
            scratch: None,
            sends_first_tokens: false,
            files: Path::new("."),
        })
    }

    /// RetinaNet on AGX Orin has four batches of two samples, and two streams.
    #[test]
    fn batches_of_a_multi_stream_query_are_in_flight_on_several_streams() {
        for (batch, copy_streams, streams) in
            [(Some(2), 2, 2), (Some(4), 3, 2), (Some(8), 2, 1), (None, 2, 1)]
        {
            let settings = EngineSettings {
                gpu_batch_size: batch,
                gpu_copy_streams: Some(copy_streams),
                ..EngineSettings::default()
            };
            assert_eq!(
                of(settings.clone(), Scenario::MultiStream).streams(),
                streams,
                "{batch:?}"
            );
            assert_eq!(of(settings.clone(), Scenario::SingleStream).streams(), 1);
            assert_eq!(of(settings, Scenario::Offline).streams(), copy_streams);
        }
    }

    #[test]
    fn the_gpu_works_alone_unless_a_setting_speaks_of_dla() {
        let dla = EngineSettings {
            max_dlas: Some(2),
            ..EngineSettings::default()
        };
        for (scenario, alone, with_dla) in [
            (Scenario::SingleStream, 1, 1),
            (Scenario::MultiStream, 1, 3),
            (Scenario::Offline, 1, 3),
            (Scenario::Server, 1, 3),
        ] {
            assert_eq!(of(EngineSettings::default(), scenario).streams(), alone);
            assert_eq!(of(dla.clone(), scenario).streams(), with_dla, "{scenario}");
        }
        let named = EngineSettings {
            dla_core: Some(1),
            ..EngineSettings::default()
        };
        let request = of(named, Scenario::SingleStream);
        assert_eq!((request.gpu.streams, request.dla_cores.as_slice()), (0, &[1][..]));
        let without_gpu = EngineSettings {
            no_gpu: Some(true),
            gpu_batch_size: Some(256),
            dla_batch_size: Some(8),
            ..EngineSettings::default()
        };
        for (scenario, cores) in [(Scenario::SingleStream, &[0][..]), (Scenario::Offline, &[0, 1])] {
            let request = of(without_gpu.clone(), scenario);
            assert_eq!(
                (request.gpu.streams, request.dla_cores.as_slice()),
                (0, cores),
                "{scenario}"
            );
        }
        assert_eq!(of(without_gpu, Scenario::Offline).batch(), Some(8));
    }
}
