//! The memory check before a build. On small boards, the kernel kills builds that run out of memory, and sometimes the
//! user's session too.

use anyhow::anyhow;
use regatta_cuda::{Context, Driver};
use regatta_loadgen::memory;

use crate::exit::Failure;

/// Memory in bytes that a build needs besides weights and workspace: TensorRT and CUDA themselves.
const BASE: u64 = 768 << 20;
/// Copies of the weights during a build: the parser's, the network's, the tactics' and the plan's.
const COPIES: u64 = 4;

/// Rejects a build for which the machine or a discrete GPU has too little free memory.
///
/// # Errors
/// When memory is too small, with the needed and the free amount and a remedy.
pub(super) fn check(model_bytes: u64, workspace_bytes: u64) -> Result<(), Failure> {
    let device = device();
    // A discrete GPU holds the workspace in its own memory.
    let workspace_here = if device.is_some() { 0 } else { workspace_bytes };
    let needed = BASE
        .saturating_add(model_bytes.saturating_mul(COPIES))
        .saturating_add(workspace_here);
    // On a Jetson, the GPU uses this memory too.
    if let Some(free) = memory::available().filter(|&free| free < needed) {
        return Err(too_little(needed, "", free, "end other programs, or add swap"));
    }
    let needed = model_bytes.saturating_add(workspace_bytes);
    match device.filter(|&free| free < needed) {
        Some(free) => Err(too_little(
            needed,
            " on the GPU",
            free,
            "end other programs that use it, or set a smaller --workspace",
        )),
        None => Ok(()),
    }
}

fn too_little(needed: u64, place: &str, free: u64, way: &str) -> Failure {
    Failure::could_not(anyhow!(
        "the build needs about {} MiB{place}, but {} MiB are free; hint: {way}, or build with --ignore-memory",
        needed.div_ceil(1 << 20),
        free >> 20
    ))
}

/// Returns the free bytes of the GPU for the build, if it has its own memory. The build itself reports errors of the
/// driver.
fn device() -> Option<u64> {
    let context: Context = Driver::open().ok()?.context(0).ok()?;
    let (free, _) = (!context.device().integrated)
        .then(|| context.memory().ok())
        .flatten()?;
    Some(free as u64)
}
