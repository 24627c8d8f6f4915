//! The largest workspace with which engines are built. NVIDIA's settings ask for 30 GB where a board has 16, and TensorRT itself has no limit.

use std::sync::OnceLock;

use regatta_board::FactsReader;
use regatta_cuda::devices;

/// A workspace may take this part of the memory that GPU and host share. Weights, TensorRT and the system need the rest.
const SHARE: u64 = 2;

/// Returns the workspace in bytes with which an engine is built that needs `requested` bytes: at most half of the memory of a machine whose
/// GPU shares it. The memory of a discrete GPU is checked by the build.
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
