//! How a class label lies in a response's bytes (the official scripts' `--dtype`).

use std::str::FromStr;

use regatta_rules::{UnknownWord, benchmark::Response};

/// The element type of a response, little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelType {
    /// A signed byte (the compliance scripts' default).
    Byte,
    /// 32-bit IEEE float; the label is its integer part.
    Float32,
    /// 32-bit signed integer.
    Int32,
    /// 64-bit signed integer.
    Int64,
}

/// Response bytes without a label in them.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LabelFault {
    /// No bytes at all.
    #[error("the response is empty")]
    Empty,
    /// Not a whole number of elements.
    #[error("{length} bytes are no whole number of {size}-byte elements")]
    Length {
        /// The response's bytes.
        length: usize,
        /// Bytes of one element.
        size: usize,
    },
    /// A float that is no number.
    #[error("the label is {0}")]
    NotFinite(f32),
}

impl LabelType {
    /// The type that a benchmark's responses have; `None` where the benchmark's file does not tell.
    #[must_use]
    pub fn of(response: Response) -> Option<Self> {
        match response {
            Response::ArgmaxInt32 => Some(Self::Int32),
            Response::Raw | Response::Stacked => None,
        }
    }

    /// The label in `data`: the first element, as the official script takes it.
    ///
    /// # Errors
    /// See [`LabelFault`]; the official script stops with a traceback at the same places.
    pub fn read(self, data: &[u8]) -> Result<i64, LabelFault> {
        if data.is_empty() {
            return Err(LabelFault::Empty);
        }
        let label = match self {
            Self::Byte => first(data).map(|[byte]: [u8; 1]| i64::from(byte.cast_signed())),
            Self::Int32 => first(data).map(i32::from_le_bytes).map(i64::from),
            Self::Int64 => first(data).map(i64::from_le_bytes),
            Self::Float32 => match first(data).map(f32::from_le_bytes) {
                Some(value) if !value.is_finite() => return Err(LabelFault::NotFinite(value)),
                // Towards zero, as Python's int() does; labels are far from the ends of i64.
                value => value.map(|value| value as i64),
            },
        };
        label.ok_or(LabelFault::Length {
            length: data.len(),
            size: self.size(),
        })
    }

    /// Bytes of one element.
    const fn size(self) -> usize {
        match self {
            Self::Byte => 1,
            Self::Float32 | Self::Int32 => 4,
            Self::Int64 => 8,
        }
    }
}

/// The first element of a whole number of `N`-byte elements.
fn first<const N: usize>(data: &[u8]) -> Option<[u8; N]> {
    let (elements, rest) = data.as_chunks();
    if rest.is_empty() {
        elements.first().copied()
    } else {
        None
    }
}

impl FromStr for LabelType {
    type Err = UnknownWord;

    /// The official scripts' words, in any case.
    fn from_str(given: &str) -> Result<Self, UnknownWord> {
        match given.to_ascii_lowercase().as_str() {
            "byte" => Ok(Self::Byte),
            "float32" => Ok(Self::Float32),
            "int32" => Ok(Self::Int32),
            "int64" => Ok(Self::Int64),
            _ => Err(UnknownWord {
                kind: "response type",
                given: given.to_owned(),
                known: "byte, float32, int32, int64",
            }),
        }
    }
}
