//! Reads a class label from the bytes of a response (the official scripts' `--dtype`).

use std::str::FromStr;

use half::f16;
use regatta_types::{UnknownWord, benchmark::Response};

/// The element type of a response, little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelType {
    /// A signed byte (the compliance scripts' default).
    Byte,
    /// 16-bit IEEE float; the label is its integer part.
    Float16,
    /// 32-bit IEEE float; the label is its integer part.
    Float32,
    /// 32-bit signed integer.
    Int32,
    /// 64-bit signed integer.
    Int64,
}

/// The error for a response that contains no label.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LabelError {
    /// The response has no bytes.
    #[error("the response is empty")]
    Empty,
    /// The length is not a multiple of the element size.
    #[error("{length} bytes are not a multiple of {size}-byte elements")]
    Length {
        /// The response's length in bytes.
        length: usize,
        /// The size of an element in bytes.
        size: usize,
    },
    /// The label is a float that is infinite or not a number.
    #[error("the label is {0}")]
    NotFinite(f32),
}

impl LabelType {
    /// Returns the label type of a benchmark's responses. `None` when the benchmark's file does not define it.
    #[must_use]
    pub fn of(response: Response) -> Option<Self> {
        match response {
            Response::ArgmaxInt32 => Some(Self::Int32),
            Response::Raw
            | Response::Stacked
            | Response::Detections
            | Response::Segmentation
            | Response::AllOutputs
            | Response::Transcript
            | Response::Tokens
            | Response::Image => None,
        }
    }

    /// Reads the label in `data`: the first element, as in the official script.
    ///
    /// # Errors
    /// [`LabelError`] for the responses on which the official script stops with a traceback.
    pub fn read(self, data: &[u8]) -> Result<i64, LabelError> {
        if data.is_empty() {
            return Err(LabelError::Empty);
        }
        let label = match self {
            Self::Byte => first(data).map(|[byte]: [u8; 1]| i64::from(byte.cast_signed())),
            Self::Int32 => first(data).map(i32::from_le_bytes).map(i64::from),
            Self::Int64 => first(data).map(i64::from_le_bytes),
            Self::Float16 => whole(first(data).map(f16::from_le_bytes).map(f32::from))?,
            Self::Float32 => whole(first(data).map(f32::from_le_bytes))?,
        };
        label.ok_or(LabelError::Length {
            length: data.len(),
            size: self.size(),
        })
    }

    /// Returns the type's name in the official scripts.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Byte => "byte",
            Self::Float16 => "float16",
            Self::Float32 => "float32",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
        }
    }

    /// Returns the size of an element in bytes.
    const fn size(self) -> usize {
        match self {
            Self::Byte => 1,
            Self::Float16 => 2,
            Self::Float32 | Self::Int32 => 4,
            Self::Int64 => 8,
        }
    }
}

/// Truncates as Python's `int`; labels are far from the limits of `i64`.
fn whole(value: Option<f32>) -> Result<Option<i64>, LabelError> {
    match value {
        Some(value) if !value.is_finite() => Err(LabelError::NotFinite(value)),
        value => Ok(value.map(|value| value as i64)),
    }
}

/// Returns the first of the `N`-byte elements. `None` when the length is not a multiple of `N`.
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

    /// Parses the names of the official scripts, in upper or lower case.
    fn from_str(name: &str) -> Result<Self, UnknownWord> {
        [Self::Byte, Self::Float16, Self::Float32, Self::Int32, Self::Int64]
            .into_iter()
            .find(|label_type| label_type.word().eq_ignore_ascii_case(name))
            .ok_or_else(|| UnknownWord {
                kind: "response type",
                text: name.to_owned(),
                known: "byte, float16, float32, int32, int64",
            })
    }
}
