//! A draft of the official system description: the board's facts under the submission checker's keys. People must fill
//! in the empty fields: supplier, cooling, network, status.

use serde::Serialize;

use crate::{
    board::{Board, Kind},
    power::Power,
    software::Software,
    system::System,
};

/// The fields of a submission's `systems/<system>.json`, as the newest round's checker requires them. Fields that
/// cannot be read are empty.
#[derive(Debug, Serialize)]
pub(super) struct SystemDescription {
    accelerator_frequency: String,
    accelerator_host_interconnect: String,
    accelerator_interconnect: String,
    accelerator_interconnect_topology: String,
    accelerator_memory_capacity: String,
    accelerator_memory_configuration: String,
    accelerator_model_name: String,
    #[serde(rename = "accelerator_on-chip_memories")]
    accelerator_on_chip_memories: String,
    accelerators_per_node: u32,
    cooling: String,
    division: String,
    framework: String,
    host_memory_capacity: String,
    host_memory_configuration: String,
    host_network_card_count: String,
    host_networking: String,
    host_networking_topology: String,
    host_processor_caches: String,
    host_processor_core_count: u32,
    host_processor_frequency: String,
    host_processor_interconnect: String,
    host_processor_model_name: String,
    host_processors_per_node: u32,
    host_storage_capacity: String,
    host_storage_type: String,
    hw_notes: String,
    number_of_nodes: u32,
    operating_system: String,
    other_software_stack: String,
    status: String,
    submitter: String,
    sw_notes: String,
    system_name: String,
    system_type: String,
    system_type_detail: String,
}

impl SystemDescription {
    /// Returns a draft with the known fields.
    pub(super) fn draft(board: &Board, software: &Software, power: &Power, system: &System) -> Self {
        let is_jetson = board.kind == Kind::Jetson;
        let module = board.module.as_ref().and_then(|module| module.name.clone());
        let name = module.map(|name| {
            format!(
                "NVIDIA {}",
                if name.starts_with("IGX") {
                    name
                } else {
                    format!("Jetson {name}")
                }
            )
        });
        // On a module, accelerator and host are one chip with shared memory.
        let of_one_chip = |text: &str| if is_jetson { text.to_owned() } else { String::new() };
        let storage: Vec<String> = system
            .storage
            .iter()
            .map(|disk| format!("{} GB {}", disk.bytes / 1_000_000_000, disk.kind))
            .collect();
        Self {
            accelerator_frequency: power
                .gpu
                .as_ref()
                .and_then(|gpu| gpu.highest_hz)
                .map_or_else(String::new, |hz| megahertz(hz / 1_000_000)),
            accelerator_host_interconnect: of_one_chip("N/A"),
            accelerator_interconnect: of_one_chip("N/A"),
            accelerator_interconnect_topology: String::new(),
            accelerator_memory_capacity: of_one_chip("Shared with host"),
            accelerator_memory_configuration: String::new(),
            accelerator_model_name: name.clone().unwrap_or_default(),
            accelerator_on_chip_memories: String::new(),
            // The DLA cores are part of the one accelerator, as in the published descriptions.
            accelerators_per_node: u32::from(is_jetson),
            cooling: String::new(),
            division: String::new(),
            framework: stack(software).join(", "),
            host_memory_capacity: memory_capacity(system.memory_bytes),
            host_memory_configuration: String::new(),
            host_network_card_count: String::new(),
            host_networking: String::new(),
            host_networking_topology: String::new(),
            host_processor_caches: String::new(),
            host_processor_core_count: system.cpus_present,
            host_processor_frequency: power
                .cpu
                .iter()
                .filter_map(|clock| clock.highest_khz)
                .max()
                .map_or_else(String::new, |khz| megahertz(khz / 1_000)),
            host_processor_interconnect: String::new(),
            host_processor_model_name: system.processor.clone().unwrap_or_default(),
            host_processors_per_node: 1,
            host_storage_capacity: storage.join(", "),
            host_storage_type: system
                .storage
                .iter()
                .map(|disk| disk.kind)
                .collect::<Vec<_>>()
                .join(", "),
            hw_notes: match board.dla_cores {
                0 => String::new(),
                cores => format!("{cores} DLA cores"),
            },
            number_of_nodes: 1,
            operating_system: match &software.l4t {
                Some(l4t) => format!("Jetson r{l4t} L4T"),
                None => software.os.clone().unwrap_or_default(),
            },
            other_software_stack: stack(software).join(", "),
            status: String::new(),
            submitter: String::new(),
            sw_notes: String::new(),
            system_name: name.or_else(|| board.model.clone()).unwrap_or_default(),
            system_type: "edge".to_owned(),
            system_type_detail: String::new(),
        }
    }
}

/// Formats a clock, here the hardware's highest, independent of the power mode.
fn megahertz(clock: u64) -> String {
    format!("{clock} MHz")
}

fn stack(software: &Software) -> Vec<String> {
    [
        ("JetPack", &software.jetpack),
        ("TensorRT", &software.tensorrt),
        ("CUDA", &software.cuda),
        ("cuDNN", &software.cudnn),
    ]
    .into_iter()
    .filter_map(|(name, version)| Some(format!("{name} {}", version.as_ref()?)))
    .collect()
}

/// Returns the installed memory, derived from what the kernel reports. The value is rounded up to an even number of
/// GiB. Above 16 GiB, it is rounded up to a multiple of 8.
fn memory_capacity(bytes: u64) -> String {
    let gib = bytes.div_ceil(1 << 30);
    if gib == 0 {
        return String::new();
    }
    let step = if gib > 16 { 8 } else { 2 };
    format!("{} GB", gib.next_multiple_of(step))
}
