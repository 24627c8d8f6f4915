//! Obstacles to a repeatable measurement. Each finding states what was read, why it matters and which command fixes it.

use super::report::{Examination, Finding, Severity};
use crate::board::Kind;

/// Distance in thousandths of a degree from a zone's trip point, below which a run of ten minutes will reach it.
const THERMAL_MARGIN: i64 = 10_000;
/// Load of other programs, in processors, above which it affects the measurement.
const IDLE_LOAD: f64 = 1.0;
/// Free memory in bytes below which an engine build is likely to fail. TensorRT alone was observed to need 2.6 GB.
const MEMORY_FOR_BUILDS: u64 = 3 << 30;
/// Swapped bytes above which an engine's own pages are likely compressed or written out.
const SWAP_IN_USE: u64 = 64 << 20;

/// Returns all findings, the most severe first.
pub(super) fn of(seen: &Examination) -> Vec<Finding> {
    let mut findings: Vec<Finding> = [
        blind(seen),
        virtual_machine(seen),
        container(seen),
        desktop(seen),
        cpu_clocks(seen),
        gpu_clock(seen),
        heat(seen),
        slowed_down(seen),
        over_current(seen),
        load(seen),
        swap_in_use(seen),
        current_limit(seen),
        power_mode(seen),
        no_fast_mode(seen),
        zram(seen),
        clock_sync(seen),
        low_memory(seen),
        missing_software(seen),
        unknown_module(seen),
        cores_off(seen),
        small_pages(seen),
        memory_clock(seen),
        fan_profile(seen),
        no_helper(seen),
    ]
    .into_iter()
    .flatten()
    .collect();
    findings.sort_by_key(|finding| finding.severity);
    findings
}

/// Returns a finding if `is_so`.
fn finding(
    is_so: bool,
    id: &'static str,
    severity: Severity,
    what: impl FnOnce() -> String,
    why: &'static str,
    fix: Option<&str>,
) -> Option<Finding> {
    is_so.then(|| Finding {
        id,
        severity,
        what: what(),
        why,
        fix: fix.map(str::to_owned),
    })
}

fn is_jetson(seen: &Examination) -> bool {
    seen.board.kind == Kind::Jetson
}

fn blind(seen: &Examination) -> Option<Finding> {
    finding(
        seen.system.cpus_online == 0 || seen.system.memory_bytes == 0,
        "blind",
        Severity::Unfit,
        || "neither the processors nor the memory of this system can be read".to_owned(),
        "/proc and /sys must be mounted and readable",
        None,
    )
}

fn virtual_machine(seen: &Examination) -> Option<Finding> {
    let hypervisor = seen.system.hypervisor?;
    finding(
        true,
        "virtual-machine",
        Severity::Unfit,
        || format!("this is a virtual machine (hypervisor {hypervisor})"),
        "its host decides how much processor time it gets",
        None,
    )
}

fn container(seen: &Examination) -> Option<Finding> {
    let maker = seen.system.container.as_deref()?;
    finding(
        true,
        "container",
        Severity::Warning,
        || format!("this is a container ({maker})"),
        "its limits of processors and memory are unknown; the values below are those of the whole machine",
        None,
    )
}

fn desktop(seen: &Examination) -> Option<Finding> {
    let process = seen.system.desktop.as_deref()?;
    finding(
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

fn cpu_clocks(seen: &Examination) -> Option<Finding> {
    let loose: Vec<_> = seen.power.cpu.iter().filter(|clock| !clock.is_fixed()).collect();
    let first = loose.first()?;
    let fix = if is_jetson(seen) {
        "sudo jetson_clocks"
    } else {
        "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"
    };
    finding(
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

fn gpu_clock(seen: &Examination) -> Option<Finding> {
    let gpu = seen.power.gpu.as_ref()?;
    finding(
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

fn heat(seen: &Examination) -> Option<Finding> {
    let margin = |zone: &&crate::sensors::ThermalZone| {
        Some(zone.slows_at_millicelsius?.saturating_sub(zone.millicelsius))
    };
    let hottest = seen
        .sensors
        .thermal
        .iter()
        .filter(|zone| margin(zone).is_some_and(|margin| margin < THERMAL_MARGIN))
        .min_by_key(margin)?;
    finding(
        true,
        "heat",
        Severity::Unfit,
        || {
            let degrees = |millicelsius: i64| millicelsius / 1_000;
            let limit = hottest.slows_at_millicelsius.map_or(0, degrees);
            format!(
                "{} is at {} C, and the board slows down at {limit} C",
                hottest.zone,
                degrees(hottest.millicelsius)
            )
        },
        "a board that slows down during a run measures its cooling",
        is_jetson(seen).then_some("sudo jetson_clocks --fan    # then let it cool down"),
    )
}

fn slowed_down(seen: &Examination) -> Option<Finding> {
    finding(
        !seen.sensors.slowed_by.is_empty(),
        "slowed-down",
        Severity::Unfit,
        || {
            format!(
                "the board is slowing itself down ({})",
                seen.sensors.slowed_by.join(", ")
            )
        },
        "it is too hot or draws too much power, which changes every measurement",
        is_jetson(seen).then_some("sudo jetson_clocks --fan    # then let it cool down"),
    )
}

/// A rail near its limit when idle will exceed it under load.
fn current_limit(seen: &Examination) -> Option<Finding> {
    let rails = seen.sensors.rails.iter();
    let (rail, now, limit) = rails
        .filter_map(|rail| {
            Some((
                rail,
                rail.milliamperes?,
                rail.limit_milliamperes.filter(|&limit| limit > 0)?,
            ))
        })
        .find(|(_, now, limit)| now.saturating_mul(10) >= limit.saturating_mul(9))?;
    finding(
        true,
        "current-limit",
        Severity::Warning,
        || {
            format!(
                "{} draws {now} mA, and the board is slowed down at {limit} mA",
                rail.label
            )
        },
        "a run will exceed the limit; use a stronger supply, or a power mode that needs less",
        None,
    )
}

fn fan_profile(seen: &Examination) -> Option<Finding> {
    let profile = seen.sensors.fan_profile.as_deref()?;
    let is_full = seen.sensors.fans.iter().any(|fan| fan.pwm == Some(255));
    finding(
        profile == "quiet" && !is_full,
        "fan-profile",
        Severity::Note,
        || "the fan follows the profile quiet".to_owned(),
        "it lets the board get hot in a long run; a run with the state MaxP sets the fan by itself",
        Some("sudo jetson_clocks --fan"),
    )
}

fn no_helper(seen: &Examination) -> Option<Finding> {
    finding(
        is_jetson(seen) && !seen.power.state_helper,
        "no-state-helper",
        Severity::Note,
        || "regatta-state, which sets power mode, clocks and fan, is not installed".to_owned(),
        "runs measure the board as it is; the regatta-agent package installs it",
        None,
    )
}

fn over_current(seen: &Examination) -> Option<Finding> {
    let events = seen.sensors.over_current_events?;
    finding(
        events > 0,
        "over-current",
        Severity::Unfit,
        || format!("the power supply was too weak {events} times since boot"),
        "the board halves its clocks at each such event; use a stronger supply, or a power mode that needs less",
        None,
    )
}

fn load(seen: &Examination) -> Option<Finding> {
    let load = seen.system.load_average?;
    finding(
        load > IDLE_LOAD,
        "load",
        Severity::Unfit,
        || format!("other programs are running: load average {load} (one minute)"),
        "the measurement has less processor time",
        Some("top -b -n 1 | head -n 15    # shows the programs"),
    )
}

fn swap_in_use(seen: &Examination) -> Option<Finding> {
    let used: u64 = seen.system.swap.iter().map(|area| area.used_bytes).sum();
    finding(
        used > SWAP_IN_USE,
        "swap-in-use",
        Severity::Unfit,
        || format!("{} MiB of memory are swapped out", used >> 20),
        "single queries are slow when samples or weights must be swapped in",
        Some("sudo swapoff -a && sudo swapon -a    # reboot if memory is too small"),
    )
}

fn power_mode(seen: &Examination) -> Option<Finding> {
    let (mode, fastest) = (seen.power.mode.as_ref()?, seen.power.fastest_mode()?);
    let name = |mode: &crate::power::PowerMode| mode.name.clone().unwrap_or_else(|| "unnamed".to_owned());
    let command = format!("sudo nvpmodel -m {}", fastest.id);
    finding(
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

fn no_fast_mode(seen: &Examination) -> Option<Finding> {
    finding(
        is_jetson(seen) && !seen.power.modes.is_empty() && seen.power.fastest_mode().is_none(),
        "no-maxn",
        Severity::Note,
        || "nvpmodel.conf offers no MAXN mode".to_owned(),
        "Xavier NX has none; an AGX or Orin board without MAXN was flashed with a configuration that limits it",
        None,
    )
}

fn zram(seen: &Examination) -> Option<Finding> {
    let areas = seen
        .system
        .swap
        .iter()
        .filter(|area| area.device.starts_with("zram"));
    let bytes: u64 = areas.map(|area| area.bytes).sum();
    finding(
        bytes > 0,
        "zram",
        Severity::Warning,
        || format!("{} MiB of memory may be compressed (zram)", bytes >> 20),
        "compressing takes processor time when memory is short; swap on NVMe does not",
        is_jetson(seen).then_some("sudo systemctl disable --now nvzramconfig"),
    )
}

fn clock_sync(seen: &Examination) -> Option<Finding> {
    let why = "a power run compares the board's time with the meter's, and is refused beyond 800 ms";
    match (seen.system.clock.synchronised, seen.system.clock.by) {
        (Some(true), _) => None,
        (Some(false), Some(service)) => finding(
            true,
            "clock",
            Severity::Warning,
            || format!("{service} has not synchronised the clock since boot"),
            why,
            Some("timedatectl timesync-status    # needs a reachable time server"),
        ),
        (Some(false), None) => finding(
            true,
            "clock",
            Severity::Warning,
            || "no service synchronises the clock".to_owned(),
            why,
            Some("sudo timedatectl set-ntp true"),
        ),
        (None, service) => finding(
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

fn low_memory(seen: &Examination) -> Option<Finding> {
    let available = seen.system.memory_available_bytes;
    finding(
        available > 0 && available < MEMORY_FOR_BUILDS,
        "memory",
        Severity::Warning,
        || format!("{} MiB of memory are free", available >> 20),
        "the kernel may end the build of an engine; stop the desktop, or add swap on NVMe",
        None,
    )
}

fn missing_software(seen: &Examination) -> Option<Finding> {
    let mut missing = Vec::new();
    if seen.software.cuda.is_none() {
        missing.push("CUDA");
    }
    if seen.software.tensorrt.is_none() {
        missing.push("TensorRT");
    }
    finding(
        is_jetson(seen) && !missing.is_empty(),
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

fn unknown_module(seen: &Examination) -> Option<Finding> {
    let name = seen.board.module.as_ref().and_then(|module| module.name.as_ref());
    finding(
        is_jetson(seen) && name.is_none(),
        "unknown-module",
        Severity::Note,
        || "the module's part number has no known name".to_owned(),
        "only the system description needs the name: enter it there",
        None,
    )
}

fn cores_off(seen: &Examination) -> Option<Finding> {
    let (online, present) = (seen.system.cpus_online, seen.system.cpus_present);
    finding(
        online > 0 && online < present,
        "cores-off",
        Severity::Note,
        || format!("{online} of {present} cores are online"),
        "the power mode sets the number",
        None,
    )
}

/// NVIDIA's AGX Orin results of rounds v2.0 to v4.0 used kernels with 64 KiB pages.
fn small_pages(seen: &Examination) -> Option<Finding> {
    let is_orin = seen
        .board
        .chip
        .as_ref()
        .is_some_and(|chip| chip.name == "tegra234");
    finding(
        is_orin && seen.system.page_bytes == Some(4096),
        "page-size",
        Severity::Note,
        || "memory pages are 4 KiB".to_owned(),
        "NVIDIA's AGX Orin results of rounds v2.0 to v4.0 used a kernel with 64 KiB pages",
        None,
    )
}

fn memory_clock(seen: &Examination) -> Option<Finding> {
    finding(
        is_jetson(seen) && seen.power.memory_hz.is_none(),
        "memory-clock",
        Severity::Note,
        || "only root can read the memory clock".to_owned(),
        "a locked memory clock belongs to the board's state",
        Some("sudo cat /sys/kernel/debug/bpmp/debug/clk/emc/rate"),
    )
}
