//! TensorRT's element types: conversion of samples to the engine's type, and of its output to LoadGen's answer.
//! Conversions that need a scale are not supported.

use half::f16;
use regatta_types::benchmark::{Dtype, Response};

use crate::{
    Answers,
    numbers::{largest, widen},
};

/// Element type of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Element {
    Fp32,
    Fp16,
    Int8,
    Int32,
    Int64,
}

impl Element {
    /// Returns the type with TensorRT's name `kind`.
    pub(crate) fn named(kind: &str) -> Option<Self> {
        match kind {
            "fp32" => Some(Self::Fp32),
            "fp16" => Some(Self::Fp16),
            "int8" => Some(Self::Int8),
            "int32" => Some(Self::Int32),
            "int64" => Some(Self::Int64),
            _ => None,
        }
    }

    /// Returns the bytes of an element.
    pub(crate) const fn size(self) -> usize {
        match self {
            Self::Int8 => 1,
            Self::Fp16 => 2,
            Self::Fp32 | Self::Int32 => 4,
            Self::Int64 => 8,
        }
    }

    /// Returns whether one element can be a class: a 32-bit or 64-bit integer.
    pub(crate) const fn is_whole(self) -> bool {
        matches!(self, Self::Int32 | Self::Int64)
    }

    /// Returns the element in `bytes` as a number for comparisons.
    fn value(self, bytes: &[u8]) -> f64 {
        match (self, bytes) {
            (Self::Int8, &[a]) => f64::from(i8::from_le_bytes([a])),
            (Self::Fp16, &[a, b]) => f16::from_le_bytes([a, b]).to_f64(),
            (Self::Fp32, &[a, b, c, d]) => f64::from(f32::from_le_bytes([a, b, c, d])),
            (Self::Int32, &[a, b, c, d]) => f64::from(i32::from_le_bytes([a, b, c, d])),
            // No network has 64-bit scores. A 64-bit class is below 2^53.
            (Self::Int64, &[a, b, c, d, e, f, g, h]) => i64::from_le_bytes([a, b, c, d, e, f, g, h]) as f64,
            _ => f64::NAN,
        }
    }
}

/// Conversion of a sample to the engine's input type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conversion {
    /// No conversion.
    None,
    /// 32-bit floats, rounded to 16 bits.
    ToHalf,
    /// 16-bit floats, widened to 32 bits.
    ToSingle,
    /// 32-bit integers, widened to 64 bits, for networks with 64-bit tokens and samples stored in 32 bits.
    ToLong,
}

impl Conversion {
    /// Returns the conversion from a sample's type to an engine's. `None` if it would need a scale.
    pub(crate) const fn between(sample: Dtype, element: Element) -> Option<Self> {
        match (sample, element) {
            (Dtype::Float32, Element::Fp32)
            | (Dtype::Float16, Element::Fp16)
            | (Dtype::Int8, Element::Int8)
            | (Dtype::Int32, Element::Int32)
            | (Dtype::Int64, Element::Int64) => Some(Self::None),
            (Dtype::Float32, Element::Fp16) => Some(Self::ToHalf),
            (Dtype::Float16, Element::Fp32) => Some(Self::ToSingle),
            (Dtype::Int32, Element::Int64) => Some(Self::ToLong),
            _ => None,
        }
    }

    /// Converts a sample into `place`.
    pub(crate) fn put(self, sample: &[u8], place: &mut [u8]) {
        match self {
            Self::None => place.copy_from_slice(sample),
            Self::ToHalf => {
                for (to, from) in place.as_chunks_mut().0.iter_mut().zip(sample.as_chunks().0) {
                    *to = f16::from_f32(f32::from_le_bytes(*from)).to_le_bytes();
                }
            }
            Self::ToSingle => {
                for (to, from) in place.as_chunks_mut().0.iter_mut().zip(sample.as_chunks().0) {
                    *to = f16::from_le_bytes(*from).to_f32().to_le_bytes();
                }
            }
            Self::ToLong => widen(sample, place),
        }
    }
}

/// Adds the answer for a sample's row of the output. `class_offset` is added to a class.
pub(crate) fn answer(
    row: &[u8],
    element: Element,
    response: Response,
    class_offset: i32,
    answers: &mut Answers,
) {
    // The runner assembles stacked outputs.
    if response != Response::ArgmaxInt32 {
        return answers.push(row);
    }
    let values = row.chunks_exact(element.size()).map(|bytes| element.value(bytes));
    let class = if row.len() == element.size() {
        // The network computed the argmax itself.
        values.map(|value| value as i32).next().unwrap_or(0)
    } else {
        largest(values)
    };
    answers.push(&class.saturating_add(class_offset).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_narrowed_and_widened_integers_widened_and_nothing_else_is() {
        let mut half = [0; 4];
        let sample: Vec<u8> = [1.5_f32, -65504.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        Conversion::ToHalf.put(&sample, &mut half);
        let mut single = [0; 8];
        Conversion::ToSingle.put(&half, &mut single);
        assert_eq!(single.as_slice(), sample);
        assert_eq!(Conversion::between(Dtype::Float32, Element::Int8), None);
        assert_eq!(Conversion::between(Dtype::Int8, Element::Fp32), None);
        assert_eq!(Conversion::between(Dtype::Int64, Element::Int32), None);
        let narrow: Vec<u8> = [-7_i32, i32::MAX].iter().flat_map(|v| v.to_le_bytes()).collect();
        let mut wide = [0; 16];
        Conversion::ToLong.put(&narrow, &mut wide);
        let expected: Vec<u8> = [-7_i64, i64::from(i32::MAX)]
            .iter()
            .flat_map(|v| v.to_le_bytes())
            .collect();
        assert_eq!(wide.as_slice(), expected);
    }

    #[test]
    fn the_class_is_the_largest_score_or_what_the_network_says() {
        let class = |row: &[u8], element| {
            let mut answers = Answers::default();
            answer(row, element, Response::ArgmaxInt32, 0, &mut answers);
            i32::from_le_bytes(answers.iter().next().unwrap().try_into().unwrap())
        };
        let halves: Vec<u8> = [f16::NAN, f16::ONE, f16::ONE]
            .iter()
            .flat_map(|v| v.to_le_bytes())
            .collect();
        assert_eq!(class(&halves, Element::Fp16), 1);
        assert_eq!(class(&[0x80, 0xff, 3, 2], Element::Int8), 2);
        assert_eq!(class(&7_i32.to_le_bytes(), Element::Int32), 7);
        assert_eq!(class(&901_i64.to_le_bytes(), Element::Int64), 901);
        assert_eq!(class(&[0, 0, 0x80, 0xff, 0, 0, 0x80, 0xff], Element::Fp32), 0);
    }
}
