//! Element types of samples, with their names in NVIDIA's harness and in numpy.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::UnknownWord;

/// Element types of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Dtype {
    /// 32-bit IEEE float.
    Float32,
    /// 16-bit IEEE float.
    Float16,
    /// Signed byte.
    Int8,
    /// 32-bit signed integer.
    Int32,
    /// 64-bit signed integer.
    Int64,
    /// Unsigned byte.
    Uint8,
    /// 64-bit IEEE float.
    Float64,
    /// A byte that is 0 or 1.
    Bool,
}

impl Dtype {
    /// All types.
    pub const ALL: [Self; 8] = [
        Self::Float32,
        Self::Float16,
        Self::Int8,
        Self::Int32,
        Self::Int64,
        Self::Uint8,
        Self::Float64,
        Self::Bool,
    ];

    /// Returns the bytes of one element.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::Int8 | Self::Uint8 | Self::Bool => 1,
            Self::Float16 => 2,
            Self::Float32 | Self::Int32 => 4,
            Self::Int64 | Self::Float64 => 8,
        }
    }

    /// Returns the type's name in NVIDIA's harness and in published measurements.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Float32 => "fp32",
            Self::Float16 => "fp16",
            Self::Int8 => "int8",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Uint8 => "uint8",
            Self::Float64 => "fp64",
            Self::Bool => "bool",
        }
    }

    /// Returns numpy's name of the type. It is little-endian, as all supported machines are.
    #[must_use]
    pub const fn numpy(self) -> &'static str {
        match self {
            Self::Float32 => "<f4",
            Self::Float16 => "<f2",
            Self::Int8 => "|i1",
            Self::Int32 => "<i4",
            Self::Int64 => "<i8",
            Self::Uint8 => "|u1",
            Self::Float64 => "<f8",
            Self::Bool => "|b1",
        }
    }
}

impl FromStr for Dtype {
    type Err = UnknownWord;

    /// Parses the name that [`Dtype::word`] returns.
    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        Self::ALL
            .into_iter()
            .find(|dtype| dtype.word() == text)
            .ok_or_else(|| UnknownWord {
                kind: "type",
                text: text.to_owned(),
                known: "fp32, fp16, int8, int32, int64, uint8, fp64, bool",
            })
    }
}
