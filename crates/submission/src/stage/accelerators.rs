//! What the system description says of accelerators: the GPUs that the runs used, as the device's driver named them. What no
//! driver tells (the kind of memory, the bus) is left to the operator.

use regatta_types::documents::{EngineKind, GpuFacts};
use serde_json::Value;

use super::{run::Run, system::gib};

/// What stands for something that the system does not have.
const NONE: &str = "N/A";

/// Fields and values, after every run of the system: a SingleStream run uses one of the GPUs that an Offline run uses together.
pub(super) fn fields_of(runs: &[&Run]) -> Vec<(&'static str, Value)> {
    let on_gpus = || {
        runs.iter()
            .filter(|run| run.spec.engine.kind == EngineKind::Tensorrt)
    };
    match on_gpus().map(|run| used(run)).max_by_key(Vec::len) {
        None => none(),
        Some(gpus) => described(&gpus),
    }
}

/// Computed by the host's processors alone. The text `0`, since the checkers take the number for an empty field.
fn none() -> Vec<(&'static str, Value)> {
    let named = [
        "accelerator_model_name",
        "accelerator_memory_capacity",
        "accelerator_host_interconnect",
        "accelerator_memory_configuration",
        "accelerator_interconnect",
    ];
    let mut fields = vec![("accelerators_per_node", "0".into())];
    fields.extend(named.map(|field| (field, NONE.into())));
    fields
}

/// The GPUs of a run: those that the setting names by number, else every one like the first, as the agent takes them.
fn used(run: &Run) -> Vec<&GpuFacts> {
    let gpus = &run.evidence.before.gpus;
    let alike = |gpu: &&GpuFacts| gpus[0].name == gpu.name;
    match run
        .spec
        .engine
        .settings
        .get("gpus")
        .filter(|&named| named != "all")
    {
        None => gpus.iter().filter(alike).collect(),
        Some(numbers) => numbers
            .split(',')
            .filter_map(|number| gpus.get(number.trim().parse::<usize>().ok()?))
            .collect(),
    }
}

fn described(gpus: &[&GpuFacts]) -> Vec<(&'static str, Value)> {
    let Some(first) = gpus.first() else {
        return Vec::new();
    };
    let name = if first.name.starts_with("NVIDIA") {
        first.name.clone()
    } else {
        format!("NVIDIA {}", first.name)
    };
    let mut fields = vec![
        ("accelerators_per_node", gpus.len().into()),
        ("accelerator_model_name", name.into()),
    ];
    if first.integrated {
        // One chip with one memory; its DLA cores are part of the one accelerator, as in the published descriptions.
        fields.extend([
            ("accelerator_memory_capacity", "Shared with host".into()),
            ("accelerator_host_interconnect", NONE.into()),
            ("accelerator_interconnect", NONE.into()),
        ]);
    } else {
        fields.push(("accelerator_memory_capacity", gib(first.memory_bytes).into()));
        if gpus.len() == 1 {
            fields.push(("accelerator_interconnect", NONE.into()));
        }
    }
    fields
}
