//! The first element of a response as NumPy reads it. TEST01 compares nothing else.

use std::{fmt, str::FromStr};

use regatta_types::benchmark::Response;

/// The data type of a response's elements, in little-endian byte order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dtype {
    /// Signed bytes, the official default.
    #[default]
    Byte,
    /// IEEE single precision.
    Float32,
    /// Signed 4-byte integers.
    Int32,
    /// Signed 8-byte integers.
    Int64,
}

impl Dtype {
    /// Returns the size of an element in bytes.
    #[must_use]
    pub const fn size(self) -> u64 {
        match self {
            Self::Byte => 1,
            Self::Float32 | Self::Int32 => 4,
            Self::Int64 => 8,
        }
    }

    /// Returns the data type of a benchmark's responses, from the benchmark's file.
    #[must_use]
    pub const fn of(response: Response) -> Self {
        match response {
            Response::ArgmaxInt32 | Response::Tokens => Self::Int32,
            Response::Raw
            | Response::Segmentation
            | Response::AllOutputs
            | Response::Transcript
            | Response::Image => Self::Byte,
            Response::Stacked | Response::Detections => Self::Float32,
        }
    }

    /// Returns the official name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Byte => "byte",
            Self::Float32 => "float32",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
        }
    }

    /// Returns the first element of a response.
    ///
    /// `first` has the response's first bytes as a little-endian number, padded with zeros.
    pub(super) fn element(self, first: u64) -> Element {
        let [a, b, c, d, ..] = first.to_le_bytes();
        match self {
            Self::Byte => Element::Integer(i64::from(i8::from_le_bytes([a]))),
            Self::Int32 => Element::Integer(i64::from(i32::from_le_bytes([a, b, c, d]))),
            Self::Int64 => Element::Integer(i64::from_le_bytes(first.to_le_bytes())),
            Self::Float32 => Element::Float(f32::from_le_bytes([a, b, c, d])),
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Dtype {
    type Err = UnknownDtype;

    fn from_str(name: &str) -> Result<Self, UnknownDtype> {
        [Self::Byte, Self::Float32, Self::Int32, Self::Int64]
            .into_iter()
            .find(|dtype| dtype.as_str().eq_ignore_ascii_case(name))
            .ok_or_else(|| UnknownDtype(name.to_owned()))
    }
}

/// The error for the name of an unknown data type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown data type `{0}`; known are byte, float32, int32, int64")]
pub struct UnknownDtype(String);

/// A first element. Floats compare by IEEE rules: NaN equals nothing, and both zeros are equal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Element {
    /// An element of an integer type.
    Integer(i64),
    /// An element of a floating-point type.
    Float(f32),
}

impl Element {
    /// Returns the absolute difference of two elements, or `None` if it is not finite or the types differ.
    #[must_use]
    pub fn distance(self, other: Self) -> Option<f64> {
        let distance = match (self, other) {
            (Self::Integer(one), Self::Integer(other)) => one.abs_diff(other) as f64,
            (Self::Float(one), Self::Float(other)) => (f64::from(one) - f64::from(other)).abs(),
            _ => return None,
        };
        distance.is_finite().then_some(distance)
    }

    /// Returns the absolute value.
    #[must_use]
    pub fn magnitude(self) -> f64 {
        match self {
            Self::Integer(value) => value.unsigned_abs() as f64,
            Self::Float(value) => f64::from(value.abs()),
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value}"),
        }
    }
}
