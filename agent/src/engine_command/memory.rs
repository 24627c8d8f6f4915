//! Whether a build has memory enough. Small boards die in builds: the kernel kills them, and at times the session with them.

use std::fs;

/// What a build takes beside the model's weights and the workspace, in bytes: TensorRT and CUDA themselves.
const BASE: u64 = 768 << 20;
/// Copies of the weights that a build holds: the parser's, the network's, the tactics that are tried, the plan.
const COPIES: u64 = 4;

/// A guess at the bytes that a build needs. The weights are nearly all of an ONNX file.
pub(super) const fn needed(onnx_bytes: u64, workspace_bytes: u64) -> u64 {
    BASE.saturating_add(onnx_bytes.saturating_mul(COPIES))
        .saturating_add(workspace_bytes)
}

/// Bytes that are free for a program, `None` where the kernel does not say. On a Jetson they are the GPU's too.
pub(super) fn available() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
