//! The memory that is available to this process. Limits of a control group are not considered.

use std::fs;

use rustix::process::{Resource, getrlimit};

/// Returns the bytes that are available to this process. It is the smaller of the system's available memory and the rest of the limit on
/// address space. `None` when the system reports neither.
#[must_use]
pub fn available() -> Option<u64> {
    let free = kib("/proc/meminfo", "MemAvailable:");
    let left = getrlimit(Resource::As).current.map(|limit| {
        let taken = kib("/proc/self/status", "VmSize:").unwrap_or(0);
        limit.saturating_sub(taken)
    });
    free.into_iter().chain(left).min()
}

/// Returns a value in KiB from a kernel file, converted to bytes.
fn kib(path: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib.saturating_mul(1024))
}
