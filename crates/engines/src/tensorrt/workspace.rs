//! The maximum workspace of engine builds. NVIDIA's settings request 30 GB for boards with 16 GB, and TensorRT itself does not limit it.

use std::sync::OnceLock;

use regatta_board::FactsReader;
use regatta_cuda::devices;

/// The divisor of the memory that GPU and host share. Weights, TensorRT and the system need the other part.
const SHARE: u64 = 2;

/// Limits the requested workspace, in bytes, to half of the memory of a machine whose GPU shares it. The build itself checks the memory of a discrete
/// GPU.
pub fn bounded_workspace(requested: u64) -> u64 {
    static LIMIT: OnceLock<u64> = OnceLock::new();
    requested.min(*LIMIT.get_or_init(limit))
}

fn limit() -> u64 {
    let has_own_memory = devices()
        .unwrap_or_default()
        .first()
        .is_some_and(|device| !device.integrated);
    match FactsReader::of_this_machine().memory_bytes() {
        bytes if bytes > 0 && !has_own_memory => bytes / SHARE,
        _ => u64::MAX,
    }
}
