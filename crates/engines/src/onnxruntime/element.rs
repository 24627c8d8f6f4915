//! The element types of tensors, by their numbers in ONNX Runtime's interface.

use std::fmt;

use half::f16;
use ort_sys::ONNXTensorElementDataType as Number;
use regatta_types::benchmark::Dtype;

/// The type of a tensor's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    Float16,
    Float32,
    Float64,
    Int8,
    Uint8,
    Int32,
    Int64,
    Bool,
    /// Another type, by its number. Newer libraries may have more.
    Other(i32),
}

impl Element {
    const NAMED: [(Self, Number, &'static str, usize); 8] = [
        (
            Self::Float16,
            Number::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16,
            "float16",
            2,
        ),
        (
            Self::Float32,
            Number::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
            "float32",
            4,
        ),
        (
            Self::Float64,
            Number::ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE,
            "float64",
            8,
        ),
        (Self::Int8, Number::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8, "int8", 1),
        (
            Self::Uint8,
            Number::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8,
            "uint8",
            1,
        ),
        (
            Self::Int32,
            Number::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32,
            "int32",
            4,
        ),
        (
            Self::Int64,
            Number::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64,
            "int64",
            8,
        ),
        (Self::Bool, Number::ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, "bool", 1),
    ];

    /// Returns the type with a number of the interface.
    pub(super) fn of(number: i32) -> Self {
        let named = Self::NAMED.iter().find(|named| named.1 as i32 == number);
        named.map_or(Self::Other(number), |named| named.0)
    }

    /// Returns the type of samples.
    pub(super) const fn of_samples(dtype: Dtype) -> Self {
        match dtype {
            Dtype::Float32 => Self::Float32,
            Dtype::Float16 => Self::Float16,
            Dtype::Int8 => Self::Int8,
            Dtype::Int32 => Self::Int32,
            Dtype::Int64 => Self::Int64,
            Dtype::Uint8 => Self::Uint8,
            Dtype::Float64 => Self::Float64,
            Dtype::Bool => Self::Bool,
        }
    }

    fn named(self) -> Option<&'static (Self, Number, &'static str, usize)> {
        Self::NAMED.iter().find(|named| named.0 == self)
    }

    /// Returns the number of the interface. `None` for types that Regatta does not use.
    pub(super) fn number(self) -> Option<Number> {
        self.named().map(|named| named.1)
    }

    /// Returns the bytes of an element. `None` for types that Regatta does not use.
    pub(super) fn size(self) -> Option<usize> {
        self.named().map(|named| named.3)
    }

    /// Returns whether one element can be a class.
    pub(super) const fn is_class(self) -> bool {
        matches!(self, Self::Int32 | Self::Int64)
    }

    /// Returns the element in `bytes` as a number for comparisons.
    pub(super) fn value(self, bytes: &[u8]) -> f64 {
        match (self, bytes) {
            (Self::Int8, &[a]) => f64::from(i8::from_le_bytes([a])),
            (Self::Uint8 | Self::Bool, &[a]) => f64::from(a),
            (Self::Float16, &[a, b]) => f16::from_le_bytes([a, b]).to_f64(),
            (Self::Float32, &[a, b, c, d]) => f64::from(f32::from_le_bytes([a, b, c, d])),
            (Self::Int32, &[a, b, c, d]) => f64::from(i32::from_le_bytes([a, b, c, d])),
            (Self::Float64, &[a, b, c, d, e, f, g, h]) => f64::from_le_bytes([a, b, c, d, e, f, g, h]),
            // No network has 64-bit scores. A 64-bit class is below 2^53.
            (Self::Int64, &[a, b, c, d, e, f, g, h]) => i64::from_le_bytes([a, b, c, d, e, f, g, h]) as f64,
            _ => f64::NAN,
        }
    }
}

impl fmt::Display for Element {
    /// Formats NumPy's name of the type.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, self.named()) {
            (_, Some(named)) => f.write_str(named.2),
            (Self::Other(number), None) => write!(f, "type {number} of ONNX"),
            (_, None) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_a_number_a_size_and_a_value() {
        for (element, number, name, size) in Element::NAMED {
            assert_eq!(Element::of(number as i32), element);
            assert_eq!((element.to_string().as_str(), element.size()), (name, Some(size)));
            assert!(element.value(&vec![0; size]).abs() < f64::EPSILON, "{name}");
        }
        assert_eq!(Element::of(8), Element::Other(8));
        assert_eq!(Element::Other(8).size(), None);
        assert_eq!(Element::Int64.value(&901_i64.to_le_bytes()).to_string(), "901");
        assert_eq!(Element::Int8.value(&[0xff]).to_string(), "-1");
    }
}
