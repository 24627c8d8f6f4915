//! The gate of a run: what must hold on the device before its process starts, how long the device waits for it, and the proof. Power mode
//! and clocks are the device state's ([`super::StateSpec`]).

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

/// One gibibyte in bytes.
const GIB: f64 = 1_073_741_824.0;

/// The conditions of a run, and how long the device waits for them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateSpec {
    /// The highest temperature of the hottest zone, in thousandths of a degree Celsius.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_millicelsius: Option<i64>,
    /// The least available memory in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_memory_bytes: Option<u64>,
    /// The least free space for the run's files in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_disk_bytes: Option<u64>,
    /// The longest wait in seconds. The run fails after it.
    pub wait_s: u64,
}

impl GateSpec {
    /// Returns the longest wait.
    #[must_use]
    pub const fn wait(&self) -> Duration {
        Duration::from_secs(self.wait_s)
    }
}

impl fmt::Display for GateSpec {
    /// Formats the conditions: `at most 60.0 C, at least 2.0 GiB of memory, waits up to 600 s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(millicelsius) = self.max_millicelsius {
            write!(f, "at most {}, ", celsius(millicelsius))?;
        }
        for (bytes, what) in [(self.min_memory_bytes, "memory"), (self.min_disk_bytes, "disk")] {
            if let Some(bytes) = bytes {
                write!(f, "at least {} of {what}, ", gibibytes(bytes))?;
            }
        }
        write!(f, "waits up to {} s", self.wait_s)
    }
}

/// The readings with which the gate opened.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GateProof {
    /// How long the device waited, in milliseconds.
    pub waited_ms: u64,
    /// The temperature of the hottest zone, in thousandths of a degree Celsius.
    pub hottest_millicelsius: Option<i64>,
    /// The available memory in bytes.
    pub memory_bytes: Option<u64>,
    /// The free space for the run's files in bytes.
    pub disk_bytes: Option<u64>,
}

/// Formats a temperature as `61.5 C`.
#[must_use]
pub fn celsius(millicelsius: i64) -> String {
    format!("{:.1} C", millicelsius as f64 / 1_000.0)
}

/// Formats a size as `1.5 GiB`.
#[must_use]
pub fn gibibytes(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / GIB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_is_printed_with_its_conditions_only() {
        let gate = GateSpec {
            max_millicelsius: Some(60_500),
            min_memory_bytes: Some(1 << 31),
            min_disk_bytes: None,
            wait_s: 600,
        };
        assert_eq!(
            gate.to_string(),
            "at most 60.5 C, at least 2.0 GiB of memory, waits up to 600 s"
        );
        let json = serde_json::to_string(&gate).unwrap();
        assert_eq!(
            json,
            r#"{"max_millicelsius":60500,"min_memory_bytes":2147483648,"wait_s":600}"#
        );
        assert_eq!(serde_json::from_str::<GateSpec>(&json).unwrap(), gate);
    }
}
