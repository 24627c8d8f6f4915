//! Determines from a device's description which engines it cannot run, and which one is the default. A run process on the device still checks its
//! engine.

use std::borrow::Cow;

use regatta_types::documents::EngineKind;

use regatta_lab_store::DeviceRow;

/// The engines that compute a model's answers, in the order of preference. A device's default is the first one that it can run.
const COMPUTING: [EngineKind; 3] = [EngineKind::Tensorrt, EngineKind::Tract, EngineKind::Onnxruntime];

/// Why a device cannot run `onnxruntime`.
const ONNXRUNTIME_MISSING: &str = "its agent finds no ONNX Runtime; hint: install it there with `python3 -m venv ort && ort/bin/pip install onnxruntime`, and name the directory with --set onnxruntime_library=PATH or in the agent's ORT_DYLIB_PATH";

/// Returns the default engine of a device. `None` when the device cannot run any engine that computes answers.
pub fn default_engine(device: &DeviceRow) -> Option<EngineKind> {
    COMPUTING
        .into_iter()
        .find(|engine| engine_obstacle(device, *engine).is_none())
}

/// Returns the engine for a device's health check: its default engine, or else `null`. `null` does not compute answers, so the check then only covers
/// the agent, LoadGen and delivery.
pub fn health_check_engine(device: &DeviceRow) -> EngineKind {
    default_engine(device).unwrap_or(EngineKind::Null)
}

/// Returns the reasons why a device has no default engine.
pub fn default_engine_obstacles(device: &DeviceRow) -> String {
    let obstacles = COMPUTING.into_iter().filter_map(|engine| {
        let obstacle = engine_obstacle(device, engine)?;
        Some(format!("{engine}: {obstacle}"))
    });
    obstacles.collect::<Vec<_>>().join("; ")
}

/// Returns the engines that cannot run on a device, with the reason.
pub fn unavailable_engines(device: &DeviceRow) -> Vec<(EngineKind, Cow<'static, str>)> {
    let engines = EngineKind::ALL.into_iter();
    engines
        .filter_map(|engine| Some((engine, engine_obstacle(device, engine)?)))
        .collect()
}

/// Returns the reason why an engine cannot run on a device. `None` if it can.
pub fn engine_obstacle(device: &DeviceRow, engine: EngineKind) -> Option<Cow<'static, str>> {
    if !device.engines.contains(&engine) {
        return Some("this build of the agent does not have it".into());
    }
    let facts = device.reported_facts();
    match engine {
        EngineKind::Tensorrt => match facts {
            Ok(facts) if !facts.gpus.is_empty() => facts.tensorrt_obstacle.map(Cow::Owned),
            _ => Some("CUDA finds no GPU on the device".into()),
        },
        EngineKind::Onnxruntime => {
            let is_installed = facts.is_ok_and(|facts| facts.onnxruntime.is_some());
            (!is_installed).then_some(ONNXRUNTIME_MISSING.into())
        }
        _ => None,
    }
}
