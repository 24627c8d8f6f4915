//! The closed list of what the helper can set. A knob has a name and nothing else: where it lies is [`crate::board`]'s.

use std::{fmt, str::FromStr};

/// Something that can be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Knob {
    /// What turns the fan by the temperature: `active` or `inactive` (JetPack 5 and later), `1` or `0` (JetPack 4).
    FanControl,
    /// What is asked of the fan, 0 to 255.
    FanSpeed,
    /// nvpmodel's mode, by number.
    PowerMode,
    /// Whether a core is switched on: `1` or `0`. Core 0 always is.
    Core(u32),
    /// A CPU clock policy's upper bound, kHz. Policies are called after their first core.
    CpuMax(u32),
    /// Its lower bound, kHz.
    CpuMin(u32),
    /// The GPU's upper bound, Hz.
    GpuMax,
    /// Its lower bound, Hz.
    GpuMin,
    /// The memory clock's upper bound, Hz; 0 is none.
    MemoryMax,
    /// Whether the memory clock stays where it is put: `1` or `0`.
    MemoryLock,
    /// The memory clock, Hz.
    MemoryRate,
    /// A DLA core's upper bound, Hz.
    DlaMax(u32),
}

impl Knob {
    /// Whether something else sets it as well while `companion` says so: a fan that is controlled, a memory clock that is
    /// not locked. Its value is then no promise.
    #[must_use]
    pub const fn ruled_by(self) -> Option<Self> {
        match self {
            Self::FanSpeed => Some(Self::FanControl),
            Self::MemoryRate => Some(Self::MemoryLock),
            _ => None,
        }
    }
}

impl fmt::Display for Knob {
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

/// Not a knob's name.
#[derive(Debug, PartialEq, Eq)]
pub struct UnknownKnob;

impl FromStr for Knob {
    type Err = UnknownKnob;

    fn from_str(given: &str) -> Result<Self, UnknownKnob> {
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
        if let Some(knob) = fixed.into_iter().find(|knob| knob.to_string() == given) {
            return Ok(knob);
        }
        let (kind, number) = given.rsplit_once('-').ok_or(UnknownKnob)?;
        let number = number.parse().map_err(|_| UnknownKnob)?;
        match kind {
            "core" => Ok(Self::Core(number)),
            "cpu-max" => Ok(Self::CpuMax(number)),
            "cpu-min" => Ok(Self::CpuMin(number)),
            "dla-max" => Ok(Self::DlaMax(number)),
            _ => Err(UnknownKnob),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for knob in [
            Knob::FanControl,
            Knob::PowerMode,
            Knob::Core(11),
            Knob::CpuMax(4),
            Knob::CpuMin(0),
            Knob::MemoryRate,
            Knob::DlaMax(1),
        ] {
            assert_eq!(knob.to_string().parse(), Ok(knob));
        }
        for wrong in [
            "",
            "core",
            "core-",
            "core--1",
            "core-../x",
            "/sys/x",
            "cpu-max-4 ",
        ] {
            assert_eq!(wrong.parse::<Knob>(), Err(UnknownKnob), "{wrong}");
        }
    }
}
