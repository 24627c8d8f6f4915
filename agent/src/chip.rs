//! The name of the chip to which engines are bound. Opens no engine.

use regatta_cuda::Device;

use crate::facts::{FactsReader, gpu};

/// The name of the chip to which an engine is bound: a discrete GPU's name, else the board's model and module, or that there is neither.
pub(crate) fn chip(gpu: Option<&Device>) -> String {
    let facts = FactsReader::of_this_machine().read();
    name_of(gpu, &facts.model, facts.module.as_deref())
}

fn name_of(gpu: Option<&Device>, model: &str, module: Option<&str>) -> String {
    // A workstation's GPU says more than its mainboard; a Jetson's GPU is called as that of its smaller sisters.
    if let Some(discrete) = gpu.filter(|gpu| !gpu.integrated) {
        return discrete.name.clone();
    }
    // A model is a carrier's word for itself, and carries modules of several sizes: AGX Orin of 32 and 64 GB has 14 and 16 multiprocessors.
    // Where the device tree names no module the GPU tells them apart.
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

/// The chip on which this program builds and loads: that of CUDA's first device, which `CUDA_VISIBLE_DEVICES` may choose.
pub(crate) fn this_chip() -> String {
    chip(gpu::devices_here().first())
}

#[cfg(test)]
mod tests {
    use super::name_of;

    /// What a discrete GPU and one without a module are called, `agent/tests/commands/engine.rs` shows.
    #[test]
    fn a_board_is_told_apart_by_its_module() {
        let model = "NVIDIA Jetson AGX Orin Developer Kit";
        let of_64_gb = name_of(None, model, Some("p3701-0005"));
        assert_eq!(of_64_gb, "NVIDIA Jetson AGX Orin Developer Kit (p3701-0005)");
        assert_ne!(of_64_gb, name_of(None, model, Some("p3701-0004")));
        assert_eq!(name_of(None, "a workstation", None), "a workstation");
    }
}
