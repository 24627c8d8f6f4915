//! A column of `telemetry.csv`: its name, its meaning and its source. `finder.rs` decides which columns a board has,
//! `sampler.rs` when they are read.

use std::{collections::BTreeMap, path::PathBuf};

use regatta_device_state::device_control::DeviceControl;

use super::{probe::Probe, wall_meter::WallMeter};

/// The state that was set, for comparison with samples.
#[derive(Debug, Default)]
pub(super) struct HeldState {
    /// Controls that the agent can read: the control, its value and its file.
    pub(super) files: Vec<(DeviceControl, String, PathBuf)>,
    /// Controls that the helper reads, and their values.
    pub(super) root: Vec<(DeviceControl, String)>,
    /// Whether the CPU clocks are locked.
    pub(super) cpu: bool,
    /// Whether the GPU clock is locked.
    pub(super) gpu: bool,
}

/// The meaning of a column, for the detection of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A number without checks.
    Plain,
    /// Temperature in thousandths of a degree Celsius.
    Temperature,
    /// Power in milliwatts, and whether it counts towards the board's power.
    Rail(bool),
    /// Power at the wall in milliwatts.
    Wall,
    /// The level of a throttling cooling device, or an over-current counter. Any rise is a finding.
    Rise,
    /// A clock that is locked at this value.
    Locked(i64),
}

/// The source of a column's number.
#[derive(Debug)]
pub(super) enum Source {
    /// A file that contains the number.
    File(Probe),
    /// Millivolts and milliamperes.
    Product(Probe, Probe),
    /// A file in thousandths of the column's unit.
    Thousandth(Probe),
    /// `/proc/stat`, with the busy and total ticks of the last sample.
    Busy(Probe, (u64, u64)),
    /// `/proc/meminfo`.
    Memory(Probe),
    /// A control that the helper reads: the memory clock.
    Helper(DeviceControl),
    /// A power meter between the wall and the board.
    Wall(Box<dyn WallMeter>),
}

/// A column of `telemetry.csv`.
#[derive(Debug)]
pub(super) struct Column {
    /// The name, with its unit as prefix where it has one, as in `millicelsius:gpu`.
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) source: Source,
}

impl Source {
    /// Reads the number. Returns `None` if the board does not report it.
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
            Self::Wall(meter) => i64::try_from(meter.milliwatts()?).ok(),
            Self::Helper(control) => from_helper.get(control)?.as_ref()?.parse().ok(),
        }
    }
}

/// Returns busy and total ticks of all processors, from the line `cpu  user nice system idle iowait irq softirq steal
/// ...`.
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
