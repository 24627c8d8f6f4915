//! Type, layout and shape that are asked of an engine's inputs and outputs, and their words. Converts nothing.

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
    /// 64-bit integers, which TensorRT has from 10 on.
    Int64 = 8,
}

impl IoType {
    /// Bytes of an element.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::Int8 => 1,
            Self::Fp16 => 2,
            Self::Fp32 | Self::Int32 => 4,
            Self::Int64 => 8,
        }
    }
}

const TYPES: [(&str, IoType); 5] = [
    ("fp32", IoType::Fp32),
    ("fp16", IoType::Fp16),
    ("int8", IoType::Int8),
    ("int32", IoType::Int32),
    ("int64", IoType::Int64),
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
            known: "fp32, fp16, int8, int32, int64",
        })
    }
}

/// What a model leaves free of an input besides the batch, in words `input_ids=384`, or `3,224,224` of the only input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputShape {
    /// The input's name; `None` for the only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its dimensions without the batch, from one to seven.
    pub dims: Vec<u32>,
}

impl InputShape {
    /// Most dimensions behind the batch that TensorRT has.
    pub const MOST: usize = 7;
}

impl fmt::Display for InputShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.name {
            write!(f, "{name}=")?;
        }
        let dims: Vec<_> = self.dims.iter().map(u32::to_string).collect();
        f.write_str(&dims.join(","))
    }
}

impl FromStr for InputShape {
    type Err = &'static str;

    fn from_str(given: &str) -> Result<Self, Self::Err> {
        // Names are the model's, and may hold anything.
        let (name, dims) = match given.rsplit_once('=') {
            Some((name, dims)) => (Some(name.to_owned()), dims),
            None => (None, given),
        };
        let number = |dim: &str| {
            dim.trim()
                .parse()
                .ok()
                .filter(|&dim| dim > 0 && dim <= i32::MAX as u32)
        };
        let dims: Option<Vec<u32>> = dims.split(',').map(number).collect();
        dims.filter(|dims| dims.len() <= Self::MOST && name.as_deref() != Some(""))
            .map(|dims| Self { name, dims })
            .ok_or("a shape is written NAME=384 or NAME=3,224,224: the input's dimensions without the batch, up to seven; NAME= may be left out of the only input")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_is_read_as_it_is_written() {
        for words in ["input_ids=384", "3,224,224", "a=b=1,2,3,4,5,6,7"] {
            assert_eq!(words.parse::<InputShape>().unwrap().to_string(), words);
        }
        for wrong in ["", "a=", "=1", "a=0", "a=-1", "a=1,,2", "1,2,3,4,5,6,7,8", "a=1x"] {
            assert!(wrong.parse::<InputShape>().is_err(), "{wrong}");
        }
    }
}
