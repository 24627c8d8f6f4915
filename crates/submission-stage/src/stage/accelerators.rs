//! The accelerator fields of a system description: the GPUs that the runs used, as the device's driver names them.
//!
//! The operator supplies what no driver reports, for example the type of memory and the bus.

use regatta_types::{
    documents::{EngineKind, GpuFacts},
    engine_settings::GpuSelection,
};
use serde_json::Value;

use super::{run::Run, system::gib};

/// The value for a component that the system does not have.
const NONE: &str = "N/A";

/// Returns fields and values from all runs of the system.
///
/// All runs are needed: a SingleStream run may use one GPU where an Offline run uses several.
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

/// Returns the fields of a system that only used its host processors. The checkers treat the number 0 as empty, hence the text
/// `0`.
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

/// Returns the GPUs of a run: those that the setting lists, else all of the first one's model. The agent selects them the same
/// way.
fn used(run: &Run) -> Vec<&GpuFacts> {
    let gpus = &run.evidence.before.gpus;
    let alike = |gpu: &&GpuFacts| gpus[0].name == gpu.name;
    match &run.spec.engine.settings.gpus {
        None | Some(GpuSelection::All) => gpus.iter().filter(alike).collect(),
        Some(GpuSelection::Named(numbers)) => numbers
            .iter()
            .filter_map(|&number| gpus.get(usize::try_from(number).ok()?))
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
        // The GPU is on the same chip and shares the host's memory. Published descriptions count its DLA cores as part of this
        // accelerator.
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
