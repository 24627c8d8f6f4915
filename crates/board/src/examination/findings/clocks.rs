//! Findings about the power mode and the clocks of processors, GPU and memory.

use super::super::report::{Examination, Finding, Severity};

pub(super) fn cpu_clocks(seen: &Examination) -> Option<Finding> {
    let loose: Vec<_> = seen.power.cpu.iter().filter(|clock| !clock.is_fixed()).collect();
    let first = loose.first()?;
    let fix = if seen.is_jetson() {
        "sudo jetson_clocks"
    } else {
        "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"
    };
    Finding::when(
        true,
        "cpu-clocks",
        Severity::Unfit,
        || {
            let governor = first.governor.as_deref().unwrap_or("unknown");
            let cpus: Vec<&str> = loose.iter().map(|clock| clock.cpus.as_str()).collect();
            format!("the clock of CPUs {} moves (governor {governor})", cpus.join(","))
        },
        "latencies depend on how fast the clock changes, and differ from run to run",
        Some(fix),
    )
}

pub(super) fn gpu_clock(seen: &Examination) -> Option<Finding> {
    let gpu = seen.power.gpu.as_ref()?;
    Finding::when(
        !gpu.is_fixed(),
        "gpu-clock",
        Severity::Unfit,
        || {
            let governor = gpu.governor.as_deref().unwrap_or("unknown");
            format!(
                "the clock of the GPU ({}) moves (governor {governor})",
                gpu.device
            )
        },
        "latencies depend on how fast the clock changes, and differ from run to run",
        Some("sudo jetson_clocks"),
    )
}

pub(super) fn power_mode(seen: &Examination) -> Option<Finding> {
    let (mode, fastest) = (seen.power.mode.as_ref()?, seen.power.fastest_mode()?);
    let name = |mode: &crate::power::PowerMode| mode.name.clone().unwrap_or_else(|| "unnamed".to_owned());
    let command = format!("sudo nvpmodel -m {}", fastest.id);
    Finding::when(
        mode.id != fastest.id,
        "power-mode",
        Severity::Warning,
        || {
            format!(
                "the power mode is {} ({}), the fastest is {} ({})",
                name(mode),
                mode.id,
                name(fastest),
                fastest.id
            )
        },
        "it limits clocks and cores; published MaxP results use the fastest mode",
        Some(&command),
    )
}

pub(super) fn no_fast_mode(seen: &Examination) -> Option<Finding> {
    Finding::when(
        seen.is_jetson() && !seen.power.modes.is_empty() && seen.power.fastest_mode().is_none(),
        "no-maxn",
        Severity::Note,
        || "nvpmodel.conf offers no MAXN mode".to_owned(),
        "Xavier NX has none; an AGX or Orin board without MAXN was flashed with a configuration that limits it",
        None,
    )
}

pub(super) fn memory_clock(seen: &Examination) -> Option<Finding> {
    Finding::when(
        seen.is_jetson() && seen.power.memory_hz.is_none(),
        "memory-clock",
        Severity::Note,
        || "only root can read the memory clock".to_owned(),
        "a locked memory clock belongs to the board's state",
        Some("sudo cat /sys/kernel/debug/bpmp/debug/clk/emc/rate"),
    )
}

pub(super) fn cores_off(seen: &Examination) -> Option<Finding> {
    let (online, present) = (seen.system.cpus_online, seen.system.cpus_present);
    Finding::when(
        online > 0 && online < present,
        "cores-off",
        Severity::Note,
        || format!("{online} of {present} cores are online"),
        "the power mode sets the number",
        None,
    )
}
