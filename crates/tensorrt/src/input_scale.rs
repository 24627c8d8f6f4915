//! The scale with which samples became 8-bit integers. An engine must read them with the same scale, which TensorRT takes from the calibration cache.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// The value of one step of 8-bit integers: a positive number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "f32", into = "f32")]
pub struct Scale {
    /// Those of the 32-bit float, by which scales are compared.
    bits: u32,
}

impl Scale {
    /// Returns the scale, or `None` if the number cannot be one.
    #[must_use]
    pub fn new(value: f32) -> Option<Self> {
        (value.is_normal() && value > 0.0).then(|| Self {
            bits: value.to_bits(),
        })
    }

    /// Returns a calibration cache in TensorRT's text format in which a tensor has this scale, in place of the one that calibration found.
    #[must_use]
    pub fn in_cache(self, cache: &[u8], tensor: &str) -> Vec<u8> {
        let name = format!("{tensor}: ");
        let is_other = |line: &&[u8]| {
            let digits = line.strip_prefix(name.as_bytes());
            !digits.is_some_and(|digits| {
                digits
                    .iter()
                    .all(|byte| byte.is_ascii_hexdigit() || *byte == b'\n')
            })
        };
        let lines = cache.split_inclusive(|&byte| byte == b'\n');
        let mut changed = lines.filter(is_other).collect::<Vec<_>>().concat();
        if changed.last().is_some_and(|&last| last != b'\n') {
            changed.push(b'\n');
        }
        changed.extend(format!("{name}{:08x}\n", self.bits).into_bytes());
        changed
    }
}

impl From<Scale> for f32 {
    fn from(scale: Scale) -> Self {
        Self::from_bits(scale.bits)
    }
}

impl TryFrom<f32> for Scale {
    type Error = &'static str;

    fn try_from(value: f32) -> Result<Self, &'static str> {
        Self::new(value).ok_or("a scale is a positive number")
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", f32::from(*self))
    }
}

/// The scale of an input, as text `images=0.02` or, for a network with one input, `0.02`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputScale {
    /// The input's name. `None` for the network's only input.
    pub name: Option<String>,
    pub scale: Scale,
}

impl fmt::Display for InputScale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.name {
            write!(f, "{name}=")?;
        }
        write!(f, "{}", self.scale)
    }
}

impl FromStr for InputScale {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // The model chooses the names, which may contain any character.
        let (name, number) = match text.rsplit_once('=') {
            Some((name, number)) => (Some(name.to_owned()), number),
            None => (None, text),
        };
        let scale = number.trim().parse().ok().and_then(Scale::new);
        scale
            .filter(|_| name.as_deref() != Some(""))
            .map(|scale| Self { name, scale })
            .ok_or("a scale is written 0.02 or NAME=0.02: the positive value of one step of the samples")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_round_trips_and_invalid_text_is_refused() {
        for words in ["0.020792441", "images=1", "input_tensor:0=0.5", "a=b=2"] {
            assert_eq!(words.parse::<InputScale>().unwrap().to_string(), words);
        }
        let json = serde_json::to_string(&Scale::new(0.020_792_441)).unwrap();
        assert_eq!(json, "0.020792441");
        assert_eq!(
            serde_json::from_str::<Scale>(&json).ok(),
            Scale::new(0.020_792_441)
        );
        for wrong in ["", "=1", "a=", "a=0", "-1", "nan", "1e-45", "inf"] {
            assert!(wrong.parse::<InputScale>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_scale_replaces_that_of_its_tensor_alone() {
        let scale = Scale::new(f32::from_bits(0x3caa_54fc)).unwrap();
        let changed = |cache: &str| String::from_utf8(scale.in_cache(cache.as_bytes(), "images")).unwrap();
        assert_eq!(
            changed(
                "TRT-8502-EntropyCalibration2\nimages: 3c000000\nimages: 2: 3d000000\n(Unnamed Layer* 2) [x]: 3e0"
            ),
            "TRT-8502-EntropyCalibration2\nimages: 2: 3d000000\n(Unnamed Layer* 2) [x]: 3e0\nimages: 3caa54fc\n"
        );
        assert_eq!(
            changed("TRT-8502-MinMaxCalibration\n"),
            "TRT-8502-MinMaxCalibration\nimages: 3caa54fc\n"
        );
    }
}
