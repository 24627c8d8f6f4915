//! The name of the chip that engines are bound to.

use regatta_board::FactsReader;
use regatta_cuda::{Device, devices};

/// Returns the name of the chip that an engine is bound to. It is a discrete GPU's name, or the board's model and
/// module, or the architecture without a GPU.
pub fn chip(gpu: Option<&Device>) -> String {
    let facts = FactsReader::of_this_machine().read();
    name_of(gpu, &facts.model, facts.module.as_deref())
}

fn name_of(gpu: Option<&Device>, model: &str, module: Option<&str>) -> String {
    // A workstation is identified by its GPU. A Jetson's GPU has the same name as that of smaller models.
    if let Some(discrete) = gpu.filter(|gpu| !gpu.integrated) {
        return discrete.name.clone();
    }
    // A model is the carrier's name, and a carrier may hold modules of several sizes. AGX Orin has 14 multiprocessors
    // with 32 GB and 16 with 64 GB. If the device tree names no module, the GPU's properties distinguish them.
    let capability = |gpu: &Device| {
        let (major, minor) = gpu.compute_capability;
        format!("compute {major}.{minor}, {} SMs", gpu.multiprocessors)
    };
    let part = module.map(str::to_owned).or_else(|| gpu.map(capability));
    let name = Some(model.to_owned()).filter(|model| !model.is_empty());
    match (name.or_else(|| gpu.map(|gpu| gpu.name.clone())), part) {
        (Some(name), Some(part)) => format!("{name} ({part})"),
        (Some(name), None) => name,
        (None, _) => format!("{} without a GPU", std::env::consts::ARCH),
    }
}

/// Returns the chip for builds and loads in this process: that of CUDA's first device, which `CUDA_VISIBLE_DEVICES` may
/// select.
pub fn this_chip() -> String {
    let devices = devices().unwrap_or_else(|error| {
        tracing::warn!("the GPUs are unknown: {:#}", anyhow::Error::from(error));
        Vec::new()
    });
    chip(devices.first())
}

#[cfg(test)]
mod tests {
    use super::name_of;

    /// Tests of the agent's commands test the names of a discrete GPU and of a board without a module.
    #[test]
    fn a_board_is_identified_by_its_module() {
        let model = "NVIDIA Jetson AGX Orin Developer Kit";
        let of_64_gb = name_of(None, model, Some("p3701-0005"));
        assert_eq!(of_64_gb, "NVIDIA Jetson AGX Orin Developer Kit (p3701-0005)");
        assert_ne!(of_64_gb, name_of(None, model, Some("p3701-0004")));
        assert_eq!(name_of(None, "a workstation", None), "a workstation");
    }
}
