//! The gate of a run as users write it: `{ max_temperature = "60C", min_memory = "2GiB", min_disk = "4GiB", wait = "10m" }`. The device
//! reads the sensors.

use std::str::FromStr;

use regatta_text::HumanDuration;
use regatta_types::documents::GateSpec;
use serde::{Deserialize, Deserializer};

use super::text_values;

/// The wait of a gate that names none.
const DEFAULT_WAIT_S: u64 = 600;
/// The longest wait of a gate: a week.
const MAX_WAIT_S: u64 = 7 * 86_400;
/// The temperatures that a gate may have, in degrees Celsius.
const TEMPERATURES: std::ops::RangeInclusive<f64> = 1.0..=125.0;

/// The gate of a run as a plan or flags state it. It may be incomplete.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GateInput {
    /// The highest temperature of the hottest zone: `60C`.
    #[serde(default, deserialize_with = "text_values::optional")]
    pub max_temperature: Option<GateTemperature>,
    /// The least available memory: `2GiB`.
    #[serde(default, deserialize_with = "text_values::optional")]
    pub min_memory: Option<GateSize>,
    /// The least free disk: `4GiB`.
    #[serde(default, deserialize_with = "text_values::optional")]
    pub min_disk: Option<GateSize>,
    /// The longest wait: `10m`, the default.
    #[serde(default, deserialize_with = "text_values::optional")]
    pub wait: Option<HumanDuration>,
}

/// An error in a gate.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// The wait is too long.
    #[error("a gate waits at most 7d, not {0}")]
    LongWait(HumanDuration),
    /// Nothing is required.
    #[error("the gate has no condition; hint: give it max_temperature, min_memory or min_disk")]
    NoCondition,
}

impl GateInput {
    /// Returns this gate, with the parts of `flags` instead where it has any.
    #[must_use]
    pub fn overridden_by(self, flags: Self) -> Self {
        Self {
            max_temperature: flags.max_temperature.or(self.max_temperature),
            min_memory: flags.min_memory.or(self.min_memory),
            min_disk: flags.min_disk.or(self.min_disk),
            wait: flags.wait.or(self.wait),
        }
    }

    /// Returns the complete gate.
    ///
    /// # Errors
    /// Returns an error for a gate without a condition, and for a wait that is too long.
    pub fn gate(&self) -> Result<GateSpec, GateError> {
        let wait_s = match self.wait {
            None => DEFAULT_WAIT_S,
            Some(wait) => Some(wait.millis().div_ceil(1_000))
                .filter(|seconds| *seconds <= MAX_WAIT_S)
                .ok_or(GateError::LongWait(wait))?,
        };
        let gate = GateSpec {
            max_millicelsius: self.max_temperature.map(|temperature| temperature.millicelsius),
            min_memory_bytes: self.min_memory.map(|size| size.bytes),
            min_disk_bytes: self.min_disk.map(|size| size.bytes),
            wait_s,
        };
        if (gate.max_millicelsius, gate.min_memory_bytes, gate.min_disk_bytes) == (None, None, None) {
            return Err(GateError::NoCondition);
        }
        Ok(gate)
    }
}

/// Deserialises a complete gate.
///
/// # Errors
/// Returns the deserializer's error for anything else.
pub fn complete_gate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<GateSpec>, D::Error> {
    let input = GateInput::deserialize(deserializer)?;
    input.gate().map(Some).map_err(serde::de::Error::custom)
}

/// The temperature of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GateTemperature {
    millicelsius: i64,
}

/// The error for text that is not the temperature of a gate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a temperature of a gate; hint: write degrees Celsius from 1C to 125C, such as 60C")]
pub struct InvalidTemperature(String);

impl FromStr for GateTemperature {
    type Err = InvalidTemperature;

    fn from_str(text: &str) -> Result<Self, InvalidTemperature> {
        let refused = || InvalidTemperature(text.to_owned());
        let number = text.trim().strip_suffix('C').ok_or_else(refused)?;
        let number = number.trim_end().trim_end_matches('\u{b0}').trim_end();
        let degrees: f64 = number.parse().map_err(|_| refused())?;
        if !TEMPERATURES.contains(&degrees) {
            return Err(refused());
        }
        let millicelsius = (degrees * 1_000.0).round() as i64;
        Ok(Self { millicelsius })
    }
}

/// A size of memory or disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GateSize {
    bytes: u64,
}

/// The error for text that is not a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a size; hint: write an integer above 0 with its unit, such as 512MiB or 2GiB")]
pub struct InvalidSize(String);

impl FromStr for GateSize {
    type Err = InvalidSize;

    fn from_str(text: &str) -> Result<Self, InvalidSize> {
        let refused = || InvalidSize(text.to_owned());
        let trimmed = text.trim();
        let shifts = [("MiB", 20), ("GiB", 30), ("TiB", 40)];
        let parts = shifts
            .into_iter()
            .find_map(|(unit, shift)| Some((trimmed.strip_suffix(unit)?, shift)));
        let (number, shift) = parts.ok_or_else(refused)?;
        let number: u64 = number.trim_end().parse().map_err(|_| refused())?;
        let bytes = number.checked_mul(1 << shift).filter(|bytes| *bytes > 0);
        Ok(Self {
            bytes: bytes.ok_or_else(refused)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn gate(toml: &str) -> Result<GateSpec, String> {
        let input: GateInput = toml::from_str(toml).map_err(|error| error.to_string())?;
        input.gate().map_err(|error| error.to_string())
    }

    #[test]
    fn a_gate_is_read_with_its_units() {
        let found =
            gate("max_temperature = '60.5 \u{b0}C'\nmin_memory = '512 MiB'\nmin_disk = '4GiB'\nwait = '90s'")
                .unwrap();
        let expected = GateSpec {
            max_millicelsius: Some(60_500),
            min_memory_bytes: Some(512 << 20),
            min_disk_bytes: Some(4 << 30),
            wait_s: 90,
        };
        assert_eq!(found, expected);
        assert_eq!(gate("max_temperature = '60C'").unwrap().wait_s, 600);
    }

    #[test]
    fn other_texts_are_refused() {
        for (text, expected) in [
            ("max_temperature = '60'", "`60` is not a temperature"),
            ("max_temperature = '300C'", "`300C` is not a temperature"),
            ("max_temperature = 'NaNC'", "`NaNC` is not a temperature"),
            ("min_memory = '2GB'", "`2GB` is not a size"),
            ("min_disk = '0GiB'", "`0GiB` is not a size"),
            ("min_disk = '99999999999999TiB'", "is not a size"),
            ("wait = '5m'", "the gate has no condition"),
            (
                "max_temperature = '60C'\nwait = '8d'",
                "a gate waits at most 7d, not 192h",
            ),
            (
                "max_temperature = '60C'\nwait = 'long'",
                "`long` is not a duration",
            ),
            ("max_temp = '60C'", "unknown field `max_temp`"),
        ] {
            let error = gate(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn flags_replace_single_values_of_a_plan() {
        let plan: GateInput = toml::from_str("max_temperature = '60C'\nwait = '5m'").unwrap();
        let flags: GateInput = toml::from_str("max_temperature = '50C'").unwrap();
        let gate = plan.overridden_by(flags).gate().unwrap();
        assert_eq!((gate.max_millicelsius, gate.wait_s), (Some(50_000), 300));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[0-9.a-zA-Z \u{b0}-]{0,20}") {
            drop((text.parse::<GateTemperature>(), text.parse::<GateSize>()));
        }
    }
}
