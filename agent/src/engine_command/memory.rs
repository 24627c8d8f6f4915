//! Whether a build has memory enough. Small boards die in builds: the kernel kills them, and at times the session with them.

use anyhow::anyhow;
use regatta_cuda::{Context, Driver};
use regatta_loadgen::memory;

use crate::exit::Failure;

/// What a build takes beside the model's weights and the workspace, in bytes: TensorRT and CUDA themselves.
const BASE: u64 = 768 << 20;
/// Copies of the weights that a build holds: the parser's, the network's, the tactics that are tried, the plan.
const COPIES: u64 = 4;

/// Refuses a build that the machine has too little free memory for, or a discrete GPU.
///
/// # Errors
/// With both figures, and what can be done.
pub(super) fn check(model_bytes: u64, workspace_bytes: u64) -> Result<(), Failure> {
    let device = device();
    // What a discrete GPU holds the host does not.
    let workspace_here = if device.is_some() { 0 } else { workspace_bytes };
    let needed = BASE
        .saturating_add(model_bytes.saturating_mul(COPIES))
        .saturating_add(workspace_here);
    // On a Jetson this memory is the GPU's too.
    if let Some(free) = memory::available().filter(|&free| free < needed) {
        return Err(too_little(needed, "", free, "end other programs, add swap"));
    }
    let needed = model_bytes.saturating_add(workspace_bytes);
    match device.filter(|&free| free < needed) {
        Some(free) => Err(too_little(
            needed,
            " on the GPU",
            free,
            "end what else uses it, give a smaller --workspace",
        )),
        None => Ok(()),
    }
}

fn too_little(needed: u64, place: &str, free: u64, way: &str) -> Failure {
    Failure::could_not(anyhow!(
        "about {} MiB are needed{place} to build, but {} MiB are free: {way}, or build with --ignore-memory",
        needed.div_ceil(1 << 20),
        free >> 20
    ))
}

/// Bytes that are free on the GPU that is built for, where it has memory of its own. What a driver cannot do the build itself will say.
fn device() -> Option<u64> {
    let context: Context = Driver::open().ok()?.context(0).ok()?;
    let (free, _) = (!context.device().integrated)
        .then(|| context.memory().ok())
        .flatten()?;
    Some(free as u64)
}
