//! How much memory this process may still take. It does not know of limits that a control group sets.

use std::fs;

use rustix::process::{Resource, getrlimit};

/// Bytes that are free for this process: what the system has, and what its own limit on address space leaves. `None` where the
/// system says neither.
#[must_use]
pub fn available() -> Option<u64> {
    let free = kib("/proc/meminfo", "MemAvailable:");
    let left = getrlimit(Resource::As).current.map(|limit| {
        let taken = kib("/proc/self/status", "VmSize:").unwrap_or(0);
        limit.saturating_sub(taken)
    });
    free.into_iter().chain(left).min()
}

/// A figure in KiB of a file of the kernel's, in bytes.
fn kib(path: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib.saturating_mul(1024))
}
