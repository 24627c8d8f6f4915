//! The engines that a device cannot run, by its own description, and the one that its runs use by default. A run process on the device
//! still checks its own engine.

use std::borrow::Cow;

use regatta_types::documents::EngineKind;

use regatta_lab_store::DeviceRow;

/// The engines that compute a model's answers, the fastest first. The first that a device can run is its default.
const COMPUTING: [EngineKind; 2] = [EngineKind::Tensorrt, EngineKind::Tract];

/// Returns the engine of a device's runs whose request names none. `None` when the device can run no engine that computes answers.
pub fn default_engine(device: &DeviceRow) -> Option<EngineKind> {
    COMPUTING
        .into_iter()
        .find(|engine| engine_obstacle(device, *engine).is_none())
}

/// Returns the engine of a device's health check: its default engine. A device without one is checked with `null`, whose answers do not
/// come from the model, so that the check covers agent, LoadGen and delivery only.
pub fn health_check_engine(device: &DeviceRow) -> EngineKind {
    default_engine(device).unwrap_or(EngineKind::Null)
}

/// Returns why a device has no default engine.
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
    if engine != EngineKind::Tensorrt {
        return None;
    }
    match device.reported_facts() {
        Ok(facts) if !facts.gpus.is_empty() => facts.tensorrt_obstacle.map(Cow::Owned),
        _ => Some("CUDA finds no GPU on the device".into()),
    }
}
