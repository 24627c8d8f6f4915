//! The first element of a response, which is all that TEST01 compares, as NumPy would see it.

use std::{fmt, str::FromStr};

use regatta_types::benchmark::Response;

/// How a response's bytes are read; little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dtype {
    /// Signed bytes: the official default.
    #[default]
    Byte,
    /// IEEE single precision.
    Float32,
    /// Signed, 4 bytes.
    Int32,
    /// Signed, 8 bytes.
    Int64,
}

impl Dtype {
    /// Bytes of an element.
    #[must_use]
    pub const fn size(self) -> u64 {
        match self {
            Self::Byte => 1,
            Self::Float32 | Self::Int32 => 4,
            Self::Int64 => 8,
        }
    }

    /// How a benchmark's responses are read: as its file says, else as the official script does by itself.
    #[must_use]
    pub const fn of(response: Response) -> Self {
        match response {
            Response::ArgmaxInt32 => Self::Int32,
            Response::Raw => Self::Byte,
            Response::Stacked => Self::Float32,
        }
    }

    /// The official spelling.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Byte => "byte",
            Self::Float32 => "float32",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
        }
    }

    /// The first element of a response that begins with these bytes (a little-endian number, zero where it is shorter).
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

/// The name of no data type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown data type `{0}`; known are byte, float32, int32, int64")]
pub struct UnknownDtype(String);

/// A first element. Floats compare as IEEE says: NaN equals nothing, the two zeros are equal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Element {
    /// Of an integer type.
    Integer(i64),
    /// Of a floating-point type.
    Float(f32),
}

impl Element {
    /// How far apart two are; `None` where that is no number.
    #[must_use]
    pub fn distance(self, other: Self) -> Option<f64> {
        let distance = match (self, other) {
            (Self::Integer(one), Self::Integer(other)) => one.abs_diff(other) as f64,
            (Self::Float(one), Self::Float(other)) => (f64::from(one) - f64::from(other)).abs(),
            _ => return None,
        };
        distance.is_finite().then_some(distance)
    }

    /// Its size without sign.
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
