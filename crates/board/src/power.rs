//! The power mode and the clocks: current values and limits. This module does not change them.

use regatta_device_state::{
    board_controls::{self, CAPS, MEMORY, OLD_MEMORY_CAP},
    nvpmodel::{self, OfferedMode},
};
use serde::Serialize;

use super::root::Root;

/// Power mode and clocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Power {
    /// The mode that nvpmodel has set.
    pub(crate) mode: Option<PowerMode>,
    /// The modes in this board's nvpmodel.conf, in its order.
    pub(crate) modes: Vec<PowerMode>,
    /// CPU clock policies. The cores of a policy share a clock.
    pub(crate) cpu: Vec<CpuClock>,
    /// The GPU's clock, if it has a `devfreq` device.
    pub(crate) gpu: Option<GpuClock>,
    /// The memory clock in Hz. Only root can read it.
    pub(crate) memory_hz: Option<u64>,
    /// Whether the memory clock is locked. Only root can read it.
    pub(crate) memory_locked: Option<bool>,
    /// The memory clock's upper bound in Hz, if one is set.
    pub(crate) memory_cap_hz: Option<u64>,
    /// The DLA cores' upper bounds in Hz, by core, if the board reports them.
    pub(crate) dla_cap_hz: Vec<u64>,
    /// Whether the helper that sets power mode, clocks and fan for runs is installed.
    pub(crate) state_helper: bool,
}

/// A power mode of nvpmodel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct PowerMode {
    /// Its number, as for `nvpmodel -m`.
    pub(crate) id: u32,
    /// Its name in nvpmodel.conf.
    pub(crate) name: Option<String>,
}

/// The clock of a policy's cores, in kHz.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct CpuClock {
    /// The cores, as ranges.
    pub(crate) cpus: String,
    /// The frequency governor.
    pub(crate) governor: Option<String>,
    /// The configured lower bound.
    pub(crate) min_khz: Option<u64>,
    /// The configured upper bound.
    pub(crate) max_khz: Option<u64>,
    /// The current clock.
    pub(crate) current_khz: Option<u64>,
    /// The hardware's maximum.
    pub(crate) highest_khz: Option<u64>,
}

/// The GPU's clock in Hz.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct GpuClock {
    /// The kernel's name of the device, which differs between JetPacks.
    pub(crate) device: String,
    /// The frequency governor.
    pub(crate) governor: Option<String>,
    /// The configured lower bound.
    pub(crate) min_hz: Option<u64>,
    /// The configured upper bound.
    pub(crate) max_hz: Option<u64>,
    /// The current clock.
    pub(crate) current_hz: Option<u64>,
    /// The hardware's maximum.
    pub(crate) highest_hz: Option<u64>,
}

/// Returns the kernel's name of the GPU's `devfreq` device, if there is one.
pub fn gpu_device(root: &Root) -> Option<String> {
    GpuClock::read(root).map(|gpu| gpu.device)
}

impl Power {
    /// Reads power mode and clocks.
    pub(crate) fn read(root: &Root) -> Self {
        let modes = offered_modes(root);
        Self {
            mode: current_mode(root, &modes),
            modes,
            cpu: root
                .below("sys/devices/system/cpu/cpufreq", "policy")
                .iter()
                .map(|policy| CpuClock::read(root, policy))
                .collect(),
            gpu: GpuClock::read(root),
            memory_hz: root.number(&format!("{MEMORY}/rate")),
            memory_locked: root
                .number::<u8>(&format!("{MEMORY}/mrq_rate_locked"))
                .map(|locked| locked != 0),
            memory_cap_hz: root
                .number(&format!("{CAPS}/emc"))
                .or_else(|| root.number(OLD_MEMORY_CAP))
                .filter(|&hz: &u64| hz > 0),
            dla_cap_hz: (0..4)
                .filter_map(|core| root.number(&format!("{CAPS}/dla{core}_core")))
                .collect(),
            state_helper: root.exists(regatta_device_state::client::SOCKET_PATH.trim_start_matches('/')),
        }
    }

    /// Returns the mode without limits, which the state helper uses for `MAXN`.
    pub(crate) fn fastest_mode(&self) -> Option<&PowerMode> {
        nvpmodel::fastest_mode(&self.modes, |mode| mode.name.as_deref())
    }
}

fn offered_modes(root: &Root) -> Vec<PowerMode> {
    let conf = root.text("etc/nvpmodel.conf").unwrap_or_default();
    let modes = nvpmodel::offered_modes(&conf).into_iter();
    modes
        .map(|OfferedMode { id, name }| PowerMode { id, name })
        .collect()
}

fn current_mode(root: &Root, modes: &[PowerMode]) -> Option<PowerMode> {
    let id = nvpmodel::current_mode(&root.text(board_controls::POWER_MODE)?)?;
    let known = modes.iter().find(|mode| mode.id == id).cloned();
    Some(known.unwrap_or(PowerMode { id, name: None }))
}

impl CpuClock {
    fn read(root: &Root, policy: &str) -> Self {
        let number = |file: &str| root.number(&format!("{policy}/{file}"));
        let cores = root.text(&format!("{policy}/affected_cpus")).unwrap_or_default();
        Self {
            cpus: as_ranges(&cores),
            governor: root.text(&format!("{policy}/scaling_governor")),
            min_khz: number("scaling_min_freq"),
            max_khz: number("scaling_max_freq"),
            current_khz: number("scaling_cur_freq"),
            highest_khz: number("cpuinfo_max_freq"),
        }
    }

    /// Returns whether the clock is fixed: both bounds are equal, or the governor is `performance`.
    pub(crate) fn is_fixed(&self) -> bool {
        self.governor.as_deref() == Some("performance")
            || (self.min_khz.is_some() && self.min_khz == self.max_khz)
    }
}

/// Converts `0 1 2 3` to `0-3`. Numbers that are not consecutive stay separate.
fn as_ranges(cores: &str) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for core in cores
        .split_ascii_whitespace()
        .filter_map(|core| core.parse().ok())
    {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(core) => *last = core,
            _ => ranges.push((core, core)),
        }
    }
    let texts = ranges.iter().map(|(first, last)| {
        if first == last {
            first.to_string()
        } else {
            format!("{first}-{last}")
        }
    });
    texts.collect::<Vec<_>>().join(",")
}

impl GpuClock {
    fn read(root: &Root) -> Option<Self> {
        let device = board_controls::gpu_device(root.names("sys/class/devfreq"))?;
        let text = |file: &str| root.text(&format!("sys/class/devfreq/{device}/{file}"));
        let number = |file: &str| text(file)?.parse().ok();
        let available = text("available_frequencies").unwrap_or_default();
        Some(Self {
            governor: text("governor"),
            min_hz: number("min_freq"),
            max_hz: number("max_freq"),
            current_hz: number("cur_freq"),
            highest_hz: available
                .split_ascii_whitespace()
                .filter_map(|hz| hz.parse().ok())
                .max(),
            device,
        })
    }

    /// Returns whether the clock is fixed.
    pub(crate) fn is_fixed(&self) -> bool {
        self.min_hz.is_some() && self.min_hz == self.max_hz
    }
}
