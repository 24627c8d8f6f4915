//! The gate of a run in a user's words: `{ max_temperature = "60C", min_memory = "2GiB", min_disk = "4GiB", wait = "10m" }`. The device
//! reads the sensors; this module only reads the words.

use regatta_text::{HumanDuration, InvalidDuration};
use regatta_types::documents::GateSpec;
use serde::{Deserialize, Serialize};

/// The wait of a gate that names none.
const DEFAULT_WAIT_S: u64 = 600;
/// The longest wait of a gate: a week.
const MAX_WAIT_S: u64 = 7 * 86_400;
/// The temperatures that a gate may have, in degrees Celsius.
const TEMPERATURES: std::ops::RangeInclusive<f64> = 1.0..=125.0;

/// The gate of a run in a plan, or of flags.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GateWords {
    /// The highest temperature of the hottest zone: `60C`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_temperature: Option<String>,
    /// The least available memory: `2GiB`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_memory: Option<String>,
    /// The least free disk: `4GiB`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_disk: Option<String>,
    /// The longest wait: `10m`, the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<String>,
}

/// An error in the words of a gate.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// The temperature cannot be parsed.
    #[error("`{0}` is not a temperature of a gate; hint: write degrees Celsius from 1C to 125C, such as 60C")]
    Temperature(String),
    /// The size cannot be parsed.
    #[error("`{0}` is not a size; hint: write an integer above 0 with its unit, such as 512MiB or 2GiB")]
    Size(String),
    /// The wait cannot be parsed.
    #[error(transparent)]
    Wait(#[from] InvalidDuration),
    /// The wait is too long.
    #[error("a gate waits at most 7d, not {0}")]
    LongWait(HumanDuration),
    /// Nothing is required.
    #[error("the gate has no condition; hint: give it max_temperature, min_memory or min_disk")]
    NoCondition,
}

impl GateWords {
    /// Returns these words, with those of `flags` instead where it has any.
    pub fn overridden_by(self, flags: &Self) -> Self {
        let pick = |own: Option<String>, flag: &Option<String>| flag.clone().or(own);
        Self {
            max_temperature: pick(self.max_temperature, &flags.max_temperature),
            min_memory: pick(self.min_memory, &flags.min_memory),
            min_disk: pick(self.min_disk, &flags.min_disk),
            wait: pick(self.wait, &flags.wait),
        }
    }

    /// Returns the gate.
    ///
    /// # Errors
    /// Returns `GateError` for the first word that cannot be read, and for a gate without a condition.
    pub fn resolve(&self) -> Result<GateSpec, GateError> {
        let wait_s = match &self.wait {
            None => DEFAULT_WAIT_S,
            Some(text) => {
                let wait: HumanDuration = text.parse()?;
                let seconds = wait.millis().div_ceil(1_000);
                if seconds > MAX_WAIT_S {
                    return Err(GateError::LongWait(wait));
                }
                seconds
            }
        };
        let gate = GateSpec {
            max_millicelsius: self.max_temperature.as_deref().map(millicelsius).transpose()?,
            min_memory_bytes: self.min_memory.as_deref().map(bytes).transpose()?,
            min_disk_bytes: self.min_disk.as_deref().map(bytes).transpose()?,
            wait_s,
        };
        if (gate.max_millicelsius, gate.min_memory_bytes, gate.min_disk_bytes) == (None, None, None) {
            return Err(GateError::NoCondition);
        }
        Ok(gate)
    }
}

fn millicelsius(text: &str) -> Result<i64, GateError> {
    let refused = || GateError::Temperature(text.to_owned());
    let number = text.trim().strip_suffix('C').ok_or_else(refused)?;
    let number = number.trim_end().trim_end_matches('\u{b0}').trim_end();
    let degrees: f64 = number.parse().map_err(|_| refused())?;
    if !TEMPERATURES.contains(&degrees) {
        return Err(refused());
    }
    Ok((degrees * 1_000.0).round() as i64)
}

fn bytes(text: &str) -> Result<u64, GateError> {
    let refused = || GateError::Size(text.to_owned());
    let text = text.trim();
    let shifts = [("MiB", 20), ("GiB", 30), ("TiB", 40)];
    let parts = shifts
        .into_iter()
        .find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, shift)));
    let (number, shift) = parts.ok_or_else(refused)?;
    let number: u64 = number.trim_end().parse().map_err(|_| refused())?;
    number
        .checked_mul(1 << shift)
        .filter(|bytes| *bytes > 0)
        .ok_or_else(refused)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn gate(toml: &str) -> Result<GateSpec, GateError> {
        toml::from_str::<GateWords>(toml).unwrap().resolve()
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
    fn other_words_are_refused() {
        for (words, expected) in [
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
        ] {
            let error = gate(words).unwrap_err().to_string();
            assert!(error.contains(expected), "{words}: {error}");
        }
        assert!(toml::from_str::<GateWords>("max_temp = '60C'").is_err());
    }

    #[test]
    fn flags_replace_single_values_of_a_plan() {
        let plan: GateWords = toml::from_str("max_temperature = '60C'\nwait = '5m'").unwrap();
        let flags: GateWords = toml::from_str("max_temperature = '50C'").unwrap();
        let gate = plan.overridden_by(&flags).resolve().unwrap();
        assert_eq!((gate.max_millicelsius, gate.wait_s), (Some(50_000), 300));
    }

    proptest! {
        #[test]
        fn no_word_panics(text in "[0-9.a-zA-Z \u{b0}-]{0,20}") {
            drop((millicelsius(&text), bytes(&text)));
        }
    }
}
