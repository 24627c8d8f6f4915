//! What a run wants of the board, in words that fit any board: the helper finds the knobs that it takes.

use std::{fmt, str::FromStr};

/// A wished state. What is `None` stays as it is found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wish {
    /// nvpmodel's mode.
    pub power_mode: Option<PowerMode>,
    /// What is asked of the fan, 0 to 255, with its control switched off.
    pub fan: Option<u8>,
    /// How many cores are on, the first ones.
    pub cores: Option<u32>,
    /// The CPU clocks, Hz.
    pub cpu: Option<Clock>,
    /// The GPU's clock, Hz.
    pub gpu: Option<Clock>,
    /// The memory clock, Hz.
    pub memory: Option<Clock>,
    /// The DLA cores' clocks, Hz: they have an upper bound alone.
    pub dla: Option<Clock>,
}

/// A power mode by number, or by nvpmodel.conf's name for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PowerMode {
    /// By number.
    Id(u32),
    /// By name; `MAXN` takes `MAXN_SUPER` where the board has that.
    Name(String),
}

/// How a clock is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// It stays there: lower and upper bound are one.
    Lock(Rate),
    /// It goes no higher, and lower as the load allows.
    Cap(Rate),
}

/// A clock rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// The highest that the hardware has.
    Highest,
    /// So many Hz, which the hardware must have.
    Hz(u64),
}

/// A wish that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongWish(pub String);

impl fmt::Display for WrongWish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no wish", self.0)
    }
}

impl std::error::Error for WrongWish {}

impl Clock {
    /// The rate.
    #[must_use]
    pub const fn rate(self) -> Rate {
        match self {
            Self::Lock(rate) | Self::Cap(rate) => rate,
        }
    }
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (how, rate) = match self {
            Self::Lock(rate) => ("lock", rate),
            Self::Cap(rate) => ("cap", rate),
        };
        match rate {
            Rate::Highest => write!(f, "{how}:max"),
            Rate::Hz(hz) => write!(f, "{how}:{hz}"),
        }
    }
}

impl FromStr for Clock {
    type Err = WrongWish;

    fn from_str(given: &str) -> Result<Self, WrongWish> {
        let wrong = || WrongWish(given.to_owned());
        let (how, rate) = given.split_once(':').ok_or_else(wrong)?;
        let rate = match rate {
            "max" => Rate::Highest,
            hz => Rate::Hz(hz.parse().map_err(|_| wrong())?),
        };
        match how {
            "lock" => Ok(Self::Lock(rate)),
            "cap" => Ok(Self::Cap(rate)),
            _ => Err(wrong()),
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
    type Err = WrongWish;

    /// A number, or a name of letters, digits and underscores.
    fn from_str(given: &str) -> Result<Self, WrongWish> {
        if let Ok(id) = given.parse() {
            return Ok(Self::Id(id));
        }
        let is_name = !given.is_empty()
            && given.len() <= 64
            && given
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_-+.".contains(c));
        if is_name {
            Ok(Self::Name(given.to_owned()))
        } else {
            Err(WrongWish(given.to_owned()))
        }
    }
}

/// `power-mode=MAXN fan=255 cores=4 cpu=lock:max gpu=cap:624750000 memory=lock:2133000000 dla=cap:883200000`
impl fmt::Display for Wish {
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

impl FromStr for Wish {
    type Err = WrongWish;

    fn from_str(given: &str) -> Result<Self, WrongWish> {
        let mut wish = Self::default();
        for word in given.split_ascii_whitespace() {
            let wrong = || WrongWish(word.to_owned());
            let (what, value) = word.split_once('=').ok_or_else(wrong)?;
            match what {
                "power-mode" => wish.power_mode = Some(value.parse()?),
                "fan" => wish.fan = Some(value.parse().map_err(|_| wrong())?),
                "cores" => wish.cores = Some(value.parse().map_err(|_| wrong())?),
                "cpu" => wish.cpu = Some(value.parse()?),
                "gpu" => wish.gpu = Some(value.parse()?),
                "memory" => wish.memory = Some(value.parse()?),
                "dla" => wish.dla = Some(value.parse()?),
                _ => return Err(wrong()),
            }
        }
        Ok(wish)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_is_read_as_it_is_written() {
        let text = "power-mode=MAXN fan=255 cores=4 cpu=lock:max gpu=cap:624750000 memory=lock:2133000000 dla=cap:max";
        assert_eq!(text.parse::<Wish>().unwrap().to_string(), text);
        assert_eq!("".parse::<Wish>().unwrap(), Wish::default());
        for wrong in [
            "fan=256",
            "cpu=max",
            "gpu=lock:-1",
            "path=/etc/passwd",
            "power-mode=a;b",
            "fan",
        ] {
            assert!(wrong.parse::<Wish>().is_err(), "{wrong}");
        }
    }
}
