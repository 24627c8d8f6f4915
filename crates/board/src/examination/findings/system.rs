//! Findings about the operating system: other programs, memory, software and the machine itself.

use super::super::report::{Examination, Finding, Severity};

/// Load of other programs, in processors, above which it affects the measurement.
const IDLE_LOAD: f64 = 1.0;
/// Free memory in bytes below which an engine build is likely to fail. TensorRT alone was observed to need 2.6 GB.
const MEMORY_FOR_BUILDS: u64 = 3 << 30;
/// Swapped bytes above which an engine's own pages are likely compressed or written out.
const SWAP_IN_USE: u64 = 64 << 20;

pub(super) fn blind(seen: &Examination) -> Option<Finding> {
    Finding::when(
        seen.system.cpus_online == 0 || seen.system.memory_bytes == 0,
        "blind",
        Severity::Unfit,
        || "neither the processors nor the memory of this system can be read".to_owned(),
        "/proc and /sys must be mounted and readable",
        None,
    )
}

pub(super) fn virtual_machine(seen: &Examination) -> Option<Finding> {
    let hypervisor = seen.system.hypervisor?;
    Finding::when(
        true,
        "virtual-machine",
        Severity::Unfit,
        || format!("this is a virtual machine (hypervisor {hypervisor})"),
        "its host decides how much processor time it gets",
        None,
    )
}

pub(super) fn container(seen: &Examination) -> Option<Finding> {
    let maker = seen.system.container.as_deref()?;
    Finding::when(
        true,
        "container",
        Severity::Warning,
        || format!("this is a container ({maker})"),
        "its limits of processors and memory are unknown; the values below are those of the machine",
        None,
    )
}

pub(super) fn desktop(seen: &Examination) -> Option<Finding> {
    let process = seen.system.desktop.as_deref()?;
    Finding::when(
        true,
        "desktop",
        Severity::Unfit,
        || format!("a desktop is running ({process})"),
        "it uses the GPU, memory and a core during the benchmark",
        Some(
            "sudo systemctl isolate multi-user.target    # permanently: sudo systemctl set-default multi-user.target",
        ),
    )
}

pub(super) fn load(seen: &Examination) -> Option<Finding> {
    let load = seen.system.load_average?;
    Finding::when(
        load > IDLE_LOAD,
        "load",
        Severity::Unfit,
        || format!("other programs are running: load average {load} (one minute)"),
        "the measurement has less processor time",
        Some("top -b -n 1 | head -n 15    # shows the programs"),
    )
}

pub(super) fn swap_in_use(seen: &Examination) -> Option<Finding> {
    let used: u64 = seen.system.swap.iter().map(|area| area.used_bytes).sum();
    Finding::when(
        used > SWAP_IN_USE,
        "swap-in-use",
        Severity::Unfit,
        || format!("{} MiB of memory are swapped out", used >> 20),
        "single queries are slow when samples or weights must be swapped in",
        Some("sudo swapoff -a && sudo swapon -a    # reboot if memory is too small"),
    )
}

pub(super) fn zram(seen: &Examination) -> Option<Finding> {
    let areas = seen
        .system
        .swap
        .iter()
        .filter(|area| area.device.starts_with("zram"));
    let bytes: u64 = areas.map(|area| area.bytes).sum();
    Finding::when(
        bytes > 0,
        "zram",
        Severity::Warning,
        || format!("{} MiB of memory may be compressed (zram)", bytes >> 20),
        "compressing takes processor time when memory is short; swap on NVMe does not",
        seen.is_jetson()
            .then_some("sudo systemctl disable --now nvzramconfig"),
    )
}

pub(super) fn clock_sync(seen: &Examination) -> Option<Finding> {
    let why = "a power run compares the board's time with the meter's, and is refused beyond 800 ms";
    match (seen.system.clock.synchronised, seen.system.clock.by) {
        (Some(true), _) => None,
        (Some(false), Some(service)) => Finding::when(
            true,
            "clock",
            Severity::Warning,
            || format!("{service} has not synchronised the clock since boot"),
            why,
            Some("timedatectl timesync-status    # needs a reachable time server"),
        ),
        (Some(false), None) => Finding::when(
            true,
            "clock",
            Severity::Warning,
            || "no service synchronises the clock".to_owned(),
            why,
            Some("sudo timedatectl set-ntp true"),
        ),
        (None, service) => Finding::when(
            true,
            "clock",
            Severity::Note,
            || {
                format!(
                    "{} synchronises the clock; no file shows its accuracy",
                    service.unwrap_or("a service")
                )
            },
            why,
            Some("timedatectl show -p NTPSynchronized"),
        ),
    }
}

pub(super) fn low_memory(seen: &Examination) -> Option<Finding> {
    let available = seen.system.memory_available_bytes;
    Finding::when(
        available > 0 && available < MEMORY_FOR_BUILDS,
        "memory",
        Severity::Warning,
        || format!("{} MiB of memory are free", available >> 20),
        "the kernel may end the build of an engine; stop the desktop, or add swap on NVMe",
        None,
    )
}

pub(super) fn missing_software(seen: &Examination) -> Option<Finding> {
    let mut missing = Vec::new();
    if seen.software.cuda.is_none() {
        missing.push("CUDA");
    }
    if seen.software.tensorrt.is_none() {
        missing.push("TensorRT");
    }
    Finding::when(
        seen.is_jetson() && !missing.is_empty(),
        "no-tensorrt",
        Severity::Warning,
        || {
            format!(
                "{} not installed",
                if missing.len() == 2 {
                    "CUDA and TensorRT are".to_owned()
                } else {
                    format!("{} is", missing.join(""))
                }
            )
        },
        "the tensorrt engine needs CUDA and TensorRT; tract and null do not",
        Some("sudo apt-get install nvidia-jetpack"),
    )
}

pub(super) fn unknown_module(seen: &Examination) -> Option<Finding> {
    let name = seen.board.module.as_ref().and_then(|module| module.name.as_ref());
    Finding::when(
        seen.is_jetson() && name.is_none(),
        "unknown-module",
        Severity::Note,
        || "the module's part number has no known name".to_owned(),
        "only the system description needs the name: enter it there",
        None,
    )
}

/// NVIDIA's AGX Orin results of rounds v2.0 to v4.0 used kernels with 64 KiB pages.
pub(super) fn small_pages(seen: &Examination) -> Option<Finding> {
    let is_orin = seen
        .board
        .chip
        .as_ref()
        .is_some_and(|chip| chip.name == "tegra234");
    Finding::when(
        is_orin && seen.system.page_bytes == Some(4096),
        "page-size",
        Severity::Note,
        || "memory pages are 4 KiB".to_owned(),
        "NVIDIA's AGX Orin results of rounds v2.0 to v4.0 used a kernel with 64 KiB pages",
        None,
    )
}
