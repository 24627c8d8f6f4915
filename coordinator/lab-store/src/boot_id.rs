//! The kernel's boot id of this machine: a random number per boot, which no two machines share. It does not identify a container.

/// Returns the boot id of this machine, as agents report theirs. `None` when the kernel does not report it.
pub fn of_this_machine() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned())
}
