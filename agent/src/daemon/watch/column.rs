//! One column of `telemetry.csv`: its name, what it means, and how its number is read. Which columns a board has is decided in
//! `finder.rs`; when they are read, in `sampler.rs`.

use std::{collections::BTreeMap, path::PathBuf};

use regatta_state::device_control::DeviceControl;

use super::probe::Probe;

/// What was set, for comparison.
#[derive(Debug, Default)]
pub(super) struct HeldState {
    /// Controls that this user can read, what they were set to, and where they lie.
    pub(super) files: Vec<(DeviceControl, String, PathBuf)>,
    /// Controls that the helper reads, and what they were set to.
    pub(super) root: Vec<(DeviceControl, String)>,
    /// Whether the CPU clocks are locked.
    pub(super) cpu: bool,
    /// Whether the GPU's clock is locked.
    pub(super) gpu: bool,
}

/// What a column means, for whoever looks for trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing beyond its number.
    Plain,
    /// Thousandths of a degree.
    Temperature,
    /// Milliwatts; whether it counts towards the board's power.
    Rail(bool),
    /// The level of a cooling device that slows something down, or a counter of over-current: any rise is trouble.
    Rise,
    /// A clock that was locked at so much.
    Locked(i64),
}

/// Where a column's number comes from.
#[derive(Debug)]
pub(super) enum Source {
    /// A file that holds the number.
    File(Probe),
    /// Millivolts and milliamperes.
    Product(Probe, Probe),
    /// A file in thousandths of the column's unit.
    Thousandth(Probe),
    /// `/proc/stat`, with busy and total ticks of the last look.
    Busy(Probe, (u64, u64)),
    /// `/proc/meminfo`.
    Memory(Probe),
    /// The memory clock, from the helper.
    Helper(DeviceControl),
}

/// One column.
#[derive(Debug)]
pub(super) struct Column {
    /// With its unit in front, as in `millicelsius:gpu`.
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) source: Source,
}

impl Source {
    /// The number as it is now; `None` where the board does not tell it.
    pub(super) fn read(&mut self, from_helper: &BTreeMap<DeviceControl, Option<String>>) -> Option<i64> {
        match self {
            Self::File(probe) => probe.number(),
            Self::Product(volts, amperes) => Some(volts.number()?.saturating_mul(amperes.number()?) / 1_000),
            Self::Thousandth(probe) => Some(probe.number()? / 1_000),
            Self::Busy(probe, before) => {
                let now = ticks(&probe.text()?)?;
                let busy = now.0.saturating_sub(before.0).saturating_mul(100);
                let share = busy.checked_div(now.1.saturating_sub(before.1));
                *before = now;
                i64::try_from(share?).ok()
            }
            Self::Memory(probe) => {
                let text = probe.text()?;
                let kib = |key: &str| {
                    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
                    line.trim().strip_suffix("kB")?.trim().parse::<i64>().ok()
                };
                Some(kib("MemTotal:")? - kib("MemAvailable:")?)
            }
            Self::Helper(knob) => from_helper.get(knob)?.as_ref()?.parse().ok(),
        }
    }
}

/// Busy and total ticks of all processors, from `cpu  user nice system idle iowait irq softirq steal ...`.
fn ticks(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line
        .split_ascii_whitespace()
        .take(8)
        .map_while(|word| word.parse().ok())
        .collect();
    let total: u64 = ticks.iter().sum();
    let idle = ticks.get(3)? + ticks.get(4)?;
    Some((total.saturating_sub(idle), total))
}
