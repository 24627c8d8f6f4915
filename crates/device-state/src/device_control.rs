//! The closed list of controls that the helper can set. A control is only a name; [`crate::board_controls`] finds its file.

use std::{fmt, str::FromStr};

/// A control of the device: one value of its power mode, clocks, cores or fan that the helper can read and write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeviceControl {
    /// The automatic fan control: `active` or `inactive` (JetPack 5 and later), `1` or `0` (JetPack 4).
    FanControl,
    /// The fan's PWM duty, 0 to 255.
    FanSpeed,
    /// The number of the nvpmodel power mode.
    PowerMode,
    /// Whether a core is online: `1` or `0`. Core 0 is always online.
    Core(u32),
    /// The upper bound of a cpufreq policy, kHz. A policy has the number of its first core.
    CpuMax(u32),
    /// The lower bound of a cpufreq policy, kHz.
    CpuMin(u32),
    /// The upper bound of the GPU clock, Hz.
    GpuMax,
    /// The lower bound of the GPU clock, Hz.
    GpuMin,
    /// The upper bound of the memory clock, Hz; 0 means no bound.
    MemoryMax,
    /// Whether the memory clock is locked at [`Self::MemoryRate`]: `1` or `0`.
    MemoryLock,
    /// The memory clock, Hz.
    MemoryRate,
    /// The upper bound of a DLA core's clock, Hz.
    DlaMax(u32),
}

impl DeviceControl {
    /// Returns the control that decides whether the board itself changes this one: the automatic control of the fan's speed, the
    /// lock of the memory clock. The value may then change at any time.
    #[must_use]
    pub const fn overridden_by(self) -> Option<Self> {
        match self {
            Self::FanSpeed => Some(Self::FanControl),
            Self::MemoryRate => Some(Self::MemoryLock),
            _ => None,
        }
    }
}

impl fmt::Display for DeviceControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FanControl => f.write_str("fan-control"),
            Self::FanSpeed => f.write_str("fan-speed"),
            Self::PowerMode => f.write_str("power-mode"),
            Self::Core(n) => write!(f, "core-{n}"),
            Self::CpuMax(n) => write!(f, "cpu-max-{n}"),
            Self::CpuMin(n) => write!(f, "cpu-min-{n}"),
            Self::GpuMax => f.write_str("gpu-max"),
            Self::GpuMin => f.write_str("gpu-min"),
            Self::MemoryMax => f.write_str("memory-max"),
            Self::MemoryLock => f.write_str("memory-lock"),
            Self::MemoryRate => f.write_str("memory-rate"),
            Self::DlaMax(n) => write!(f, "dla-max-{n}"),
        }
    }
}

/// The error for a text that is not the name of a control.
#[derive(Debug, PartialEq, Eq)]
pub struct UnknownDeviceControl;

impl FromStr for DeviceControl {
    type Err = UnknownDeviceControl;

    fn from_str(text: &str) -> Result<Self, UnknownDeviceControl> {
        let fixed = [
            Self::FanControl,
            Self::FanSpeed,
            Self::PowerMode,
            Self::GpuMax,
            Self::GpuMin,
            Self::MemoryMax,
            Self::MemoryLock,
            Self::MemoryRate,
        ];
        if let Some(control) = fixed.into_iter().find(|control| control.to_string() == text) {
            return Ok(control);
        }
        let (kind, number) = text.rsplit_once('-').ok_or(UnknownDeviceControl)?;
        let number = number.parse().map_err(|_| UnknownDeviceControl)?;
        match kind {
            "core" => Ok(Self::Core(number)),
            "cpu-max" => Ok(Self::CpuMax(number)),
            "cpu-min" => Ok(Self::CpuMin(number)),
            "dla-max" => Ok(Self::DlaMax(number)),
            _ => Err(UnknownDeviceControl),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_invalid_names_are_refused() {
        for control in [
            DeviceControl::FanControl,
            DeviceControl::PowerMode,
            DeviceControl::Core(11),
            DeviceControl::CpuMax(4),
            DeviceControl::CpuMin(0),
            DeviceControl::MemoryRate,
            DeviceControl::DlaMax(1),
        ] {
            assert_eq!(control.to_string().parse(), Ok(control));
        }
        for invalid in [
            "",
            "core",
            "core-",
            "core--1",
            "core-../x",
            "/sys/x",
            "cpu-max-4 ",
        ] {
            assert_eq!(
                invalid.parse::<DeviceControl>(),
                Err(UnknownDeviceControl),
                "{invalid}"
            );
        }
    }
}
