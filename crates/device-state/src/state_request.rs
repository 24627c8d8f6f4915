//! The request for a device state, in terms that apply to every board. It names no file: the helper finds the controls of
//! its board.

use std::{fmt, str::FromStr};

/// A request for a device state. A field that is `None` leaves that part of the state unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StateRequest {
    /// The nvpmodel power mode.
    pub power_mode: Option<PowerMode>,
    /// The fan's PWM duty, 0 to 255. Setting it switches the automatic fan control off.
    pub fan: Option<u8>,
    /// The number of CPU cores that are online, counted from core 0.
    pub cores: Option<u32>,
    /// The clock of all CPU cores.
    pub cpu: Option<ClockSetting>,
    pub gpu: Option<ClockSetting>,
    pub memory: Option<ClockSetting>,
    /// The clock of all DLA cores, which only have an upper bound.
    pub dla: Option<ClockSetting>,
}

/// An nvpmodel power mode, by number or by its name in nvpmodel.conf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PowerMode {
    /// The mode's number.
    Id(u32),
    /// The mode's name. `MAXN` selects `MAXN_SUPER` on boards that have it.
    Name(String),
}

/// A setting of a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockSetting {
    /// The clock is fixed: lower and upper bound are this rate.
    Lock(ClockRate),
    /// The rate is the upper bound; the clock falls below it with the load.
    Cap(ClockRate),
}

/// A clock rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockRate {
    /// The highest rate of the hardware.
    Highest,
    /// A rate in Hz, which the hardware must support.
    Hz(u64),
}

/// The error for a text that is not a state request. Contains the invalid part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidStateRequest(pub String);

impl fmt::Display for InvalidStateRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a valid part of a state request", self.0)
    }
}

impl std::error::Error for InvalidStateRequest {}

impl ClockSetting {
    /// Returns the rate of either setting.
    #[must_use]
    pub const fn rate(self) -> ClockRate {
        match self {
            Self::Lock(rate) | Self::Cap(rate) => rate,
        }
    }
}

impl fmt::Display for ClockSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (how, rate) = match self {
            Self::Lock(rate) => ("lock", rate),
            Self::Cap(rate) => ("cap", rate),
        };
        match rate {
            ClockRate::Highest => write!(f, "{how}:max"),
            ClockRate::Hz(hz) => write!(f, "{how}:{hz}"),
        }
    }
}

impl FromStr for ClockSetting {
    type Err = InvalidStateRequest;

    fn from_str(text: &str) -> Result<Self, InvalidStateRequest> {
        let invalid = || InvalidStateRequest(text.to_owned());
        let (how, rate) = text.split_once(':').ok_or_else(invalid)?;
        let rate = match rate {
            "max" => ClockRate::Highest,
            hz => ClockRate::Hz(hz.parse().map_err(|_| invalid())?),
        };
        match how {
            "lock" => Ok(Self::Lock(rate)),
            "cap" => Ok(Self::Cap(rate)),
            _ => Err(invalid()),
        }
    }
}

impl fmt::Display for PowerMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => write!(f, "{id}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

impl FromStr for PowerMode {
    type Err = InvalidStateRequest;

    /// Parses a number, or a name of letters, digits and `_-+.`.
    fn from_str(text: &str) -> Result<Self, InvalidStateRequest> {
        if let Ok(id) = text.parse() {
            return Ok(Self::Id(id));
        }
        let is_name = !text.is_empty()
            && text.len() <= 64
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_-+.".contains(c));
        if is_name {
            Ok(Self::Name(text.to_owned()))
        } else {
            Err(InvalidStateRequest(text.to_owned()))
        }
    }
}

/// Formats a request as `power-mode=MAXN fan=255 cores=4 cpu=lock:max gpu=cap:624750000 memory=lock:2133000000 dla=cap:883200000`
impl fmt::Display for StateRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = [
            self.power_mode.as_ref().map(|it| format!("power-mode={it}")),
            self.fan.map(|it| format!("fan={it}")),
            self.cores.map(|it| format!("cores={it}")),
            self.cpu.map(|it| format!("cpu={it}")),
            self.gpu.map(|it| format!("gpu={it}")),
            self.memory.map(|it| format!("memory={it}")),
            self.dla.map(|it| format!("dla={it}")),
        ];
        let words: Vec<String> = words.into_iter().flatten().collect();
        f.write_str(&words.join(" "))
    }
}

impl FromStr for StateRequest {
    type Err = InvalidStateRequest;

    fn from_str(text: &str) -> Result<Self, InvalidStateRequest> {
        let mut request = Self::default();
        for word in text.split_ascii_whitespace() {
            let invalid = || InvalidStateRequest(word.to_owned());
            let (what, value) = word.split_once('=').ok_or_else(invalid)?;
            match what {
                "power-mode" => request.power_mode = Some(value.parse()?),
                "fan" => request.fan = Some(value.parse().map_err(|_| invalid())?),
                "cores" => request.cores = Some(value.parse().map_err(|_| invalid())?),
                "cpu" => request.cpu = Some(value.parse()?),
                "gpu" => request.gpu = Some(value.parse()?),
                "memory" => request.memory = Some(value.parse()?),
                "dla" => request.dla = Some(value.parse()?),
                _ => return Err(invalid()),
            }
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_round_trips_and_invalid_text_is_refused() {
        let text = "power-mode=MAXN fan=255 cores=4 cpu=lock:max gpu=cap:624750000 memory=lock:2133000000 dla=cap:max";
        assert_eq!(text.parse::<StateRequest>().unwrap().to_string(), text);
        assert_eq!("".parse::<StateRequest>().unwrap(), StateRequest::default());
        for invalid in [
            "fan=256",
            "cpu=max",
            "gpu=lock:-1",
            "path=/etc/passwd",
            "power-mode=a;b",
            "fan",
        ] {
            assert!(invalid.parse::<StateRequest>().is_err(), "{invalid}");
        }
    }
}
