//! The requested type, layout and shape of an engine's inputs and outputs, as text and JSON. Converts no data.

use std::{fmt, str::FromStr};

use regatta_types::{UnknownWord, layout::Layout};
use serde::{Deserialize, Serialize};

/// The requested type and layout of all inputs, or of all outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct IoFormat {
    /// The element type. `None` keeps the network's.
    #[serde(rename = "type")]
    pub element: Option<ElementType>,
    /// The layout. `None` leaves the choice to TensorRT, which uses the linear one.
    pub format: Option<Layout>,
}

impl IoFormat {
    /// Returns whether neither type nor layout is requested.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// An element type of inputs and outputs, with the names of NVIDIA's harness. The values are those of `nvinfer1::DataType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ElementType {
    /// 32-bit floats.
    Fp32 = 0,
    /// 16-bit floats.
    Fp16 = 1,
    /// 8-bit integers, whose scale comes from the network or from calibration.
    Int8 = 2,
    /// 32-bit integers.
    Int32 = 3,
    /// 64-bit integers, in TensorRT 10 and later.
    Int64 = 8,
}

impl ElementType {
    /// Returns the size of an element in bytes.
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

const TYPES: [(&str, ElementType); 5] = [
    ("fp32", ElementType::Fp32),
    ("fp16", ElementType::Fp16),
    ("int8", ElementType::Int8),
    ("int32", ElementType::Int32),
    ("int64", ElementType::Int64),
];

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = TYPES.iter().find(|(_, kind)| kind == self);
        f.write_str(known.map_or("", |(word, _)| word))
    }
}

impl FromStr for ElementType {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        let found = TYPES.iter().find(|(word, _)| *word == text);
        found.map(|(_, element)| *element).ok_or_else(|| UnknownWord {
            kind: "type",
            text: text.to_owned(),
            known: "fp32, fp16, int8, int32, int64",
        })
    }
}

/// The dimensions of an input that the model leaves dynamic besides the batch, as text `input_ids=384`, or `3,224,224` for
/// the only input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputShape {
    /// The input's name. `None` for the model's only input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The dimensions without the batch, one to seven.
    pub dims: Vec<u32>,
}

impl InputShape {
    /// The largest number of dimensions after the batch in TensorRT.
    pub const MAX_DIMS: usize = 7;
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

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // The model chooses the names, which may contain any character.
        let (name, dims) = match text.rsplit_once('=') {
            Some((name, dims)) => (Some(name.to_owned()), dims),
            None => (None, text),
        };
        let number = |dim: &str| {
            dim.trim()
                .parse()
                .ok()
                .filter(|&dim| dim > 0 && dim <= i32::MAX as u32)
        };
        let dims: Option<Vec<u32>> = dims.split(',').map(number).collect();
        dims.filter(|dims| dims.len() <= Self::MAX_DIMS && name.as_deref() != Some(""))
            .map(|dims| Self { name, dims })
            .ok_or("a shape is written NAME=384 or NAME=3,224,224: the input's dimensions without the batch, up to seven; NAME= may be left out of the only input")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_round_trips_and_invalid_text_is_refused() {
        for words in ["input_ids=384", "3,224,224", "a=b=1,2,3,4,5,6,7"] {
            assert_eq!(words.parse::<InputShape>().unwrap().to_string(), words);
        }
        for wrong in ["", "a=", "=1", "a=0", "a=-1", "a=1,,2", "1,2,3,4,5,6,7,8", "a=1x"] {
            assert!(wrong.parse::<InputShape>().is_err(), "{wrong}");
        }
    }
}
