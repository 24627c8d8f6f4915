//! Type and layout that are asked of an engine's inputs and outputs, and the types' words. Converts nothing.

use std::{fmt, str::FromStr};

use regatta_rules::{UnknownWord, layout::Layout};
use serde::{Deserialize, Serialize};

/// What is asked of all inputs, or of all outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Io {
    /// Type of the elements; `None` leaves it to the network.
    #[serde(rename = "type")]
    pub element: Option<IoType>,
    /// Layout; `None` leaves it to TensorRT, which then takes the linear one.
    pub format: Option<Layout>,
}

impl Io {
    /// Whether nothing is asked.
    #[must_use]
    pub fn is_open(&self) -> bool {
        *self == Self::default()
    }
}

/// Types that can be asked for, named as in NVIDIA's harness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IoType {
    /// 32-bit floats.
    Fp32 = 0,
    /// 16-bit floats.
    Fp16 = 1,
    /// 8-bit integers, whose scale the network or the calibration knows.
    Int8 = 2,
    /// 32-bit integers.
    Int32 = 3,
}

const TYPES: [(&str, IoType); 4] = [
    ("fp32", IoType::Fp32),
    ("fp16", IoType::Fp16),
    ("int8", IoType::Int8),
    ("int32", IoType::Int32),
];

impl fmt::Display for IoType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = TYPES.iter().find(|(_, kind)| kind == self);
        f.write_str(known.map_or("", |(word, _)| word))
    }
}

impl FromStr for IoType {
    type Err = UnknownWord;

    fn from_str(given: &str) -> Result<Self, UnknownWord> {
        let found = TYPES.iter().find(|(word, _)| *word == given);
        found.map(|(_, element)| *element).ok_or_else(|| UnknownWord {
            kind: "type",
            given: given.to_owned(),
            known: "fp32, fp16, int8, int32",
        })
    }
}
