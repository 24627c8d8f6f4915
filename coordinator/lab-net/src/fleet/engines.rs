//! The engines that a device cannot run, by its own description. A run process on the device still checks its own engine.

use regatta_types::documents::EngineKind;

use regatta_lab_store::DeviceRow;

/// Returns the engines that cannot run on a device, with the reason.
pub fn unavailable_engines(device: &DeviceRow) -> Vec<(EngineKind, &'static str)> {
    let engines = EngineKind::ALL.into_iter();
    engines
        .filter_map(|engine| Some((engine, engine_obstacle(device, engine)?)))
        .collect()
}

/// Returns the reason why an engine cannot run on a device. `None` if it can.
pub fn engine_obstacle(device: &DeviceRow, engine: EngineKind) -> Option<&'static str> {
    let has_gpu = || device.reported_facts().is_ok_and(|facts| !facts.gpus.is_empty());
    if !device.engines.contains(&engine) {
        Some("this build of the agent does not have it")
    } else if engine == EngineKind::Tensorrt && !has_gpu() {
        Some("CUDA finds no GPU on the device")
    } else {
        None
    }
}
