//! Types and layouts of an engine's inputs and outputs: their words, and how a sample lies in memory in each. Converts nothing.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// What is asked of all inputs, or of all outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Io {
    /// Type of the elements; `None` leaves it to the network.
    #[serde(rename = "type")]
    pub element: Option<IoType>,
    /// Layout; `None` leaves it to TensorRT, which then takes the linear one.
    pub format: Option<IoFormat>,
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

/// Layouts of a tensor, named as in NVIDIA's harness; the numbers are those of `nvinfer1::TensorFormat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IoFormat {
    /// Row by row, as the shape says.
    Linear = 0,
    /// Channels last, in eights.
    Hwc8 = 2,
    /// Blocks of 4 channels.
    Chw4 = 3,
    /// Blocks of 16 channels; DLA's own for fp16.
    Chw16 = 4,
    /// Blocks of 32 channels; DLA's own for int8.
    Chw32 = 5,
    /// Channels last, in eights, with a depth.
    Dhwc8 = 6,
    /// Blocks of 32 channels, with a depth.
    Cdhw32 = 7,
    /// DLA's linear one, whose lines begin at multiples of 64 bytes.
    DlaLinear = 9,
    /// DLA's for images: up to 4 channels, last.
    DlaHwc4 = 10,
}

const TYPES: [(&str, IoType); 4] = [
    ("fp32", IoType::Fp32),
    ("fp16", IoType::Fp16),
    ("int8", IoType::Int8),
    ("int32", IoType::Int32),
];

const FORMATS: [(&str, IoFormat); 9] = [
    ("linear", IoFormat::Linear),
    ("hwc8", IoFormat::Hwc8),
    ("chw4", IoFormat::Chw4),
    ("chw16", IoFormat::Chw16),
    ("chw32", IoFormat::Chw32),
    ("dhwc8", IoFormat::Dhwc8),
    ("cdhw32", IoFormat::Cdhw32),
    ("dla_linear", IoFormat::DlaLinear),
    ("dla_hwc4", IoFormat::DlaHwc4),
];

/// What DLA's lines in memory begin at multiples of, in bytes.
const DLA_LINE: i64 = 64;

impl IoFormat {
    /// The word of a number of `nvinfer1::TensorFormat`.
    pub(crate) fn word_of(number: i32) -> String {
        FORMATS
            .iter()
            .find(|(_, format)| *format as i32 == number)
            .map_or_else(|| format!("format {number}"), |(word, _)| (*word).to_owned())
    }

    /// The shape in which a sample lies in memory whose tensor is `dims` (channels first, no batch) with elements of so many
    /// bytes; what is added is zero. `None` where such a tensor cannot have the layout, or DLA's lines would need gaps in it.
    #[must_use]
    pub fn stored(self, dims: &[i64], element_bytes: i64) -> Option<Vec<i64>> {
        let (&channels, inner) = dims.split_first()?;
        let blocks = |of: i64| {
            let first = channels.checked_add(of - 1)? / of;
            Some([&[first], inner, &[of]].concat())
        };
        let last = |of: i64| Some([inner, &[channels.checked_add(of - 1)? / of * of]].concat());
        let width = *inner.last().unwrap_or(&1);
        match self {
            Self::Linear => Some(dims.to_vec()),
            Self::Chw4 => blocks(4),
            Self::Chw16 => blocks(16),
            Self::Chw32 | Self::Cdhw32 => blocks(32),
            Self::Hwc8 | Self::Dhwc8 => last(8),
            Self::DlaHwc4 => {
                let line = width.checked_mul(4 * element_bytes)?;
                (channels <= 4 && line % DLA_LINE == 0).then(|| last(4)).flatten()
            }
            Self::DlaLinear => {
                let line = DLA_LINE / element_bytes;
                let (_, rows) = dims.split_last().filter(|(_, rows)| !rows.is_empty())?;
                Some([rows, &[width.checked_add(line - 1)? / line * line]].concat())
            }
        }
    }
}

impl fmt::Display for IoType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = TYPES.iter().find(|(_, kind)| kind == self);
        f.write_str(known.map_or("", |(word, _)| word))
    }
}

impl fmt::Display for IoFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Self::word_of(*self as i32))
    }
}

/// Not one of the words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is none of {known}")]
pub struct NoIo {
    given: String,
    known: String,
}

fn named<T: Copy>(given: &str, known: &[(&str, T)]) -> Result<T, NoIo> {
    let found = known.iter().find(|(word, _)| *word == given);
    found.map(|(_, value)| *value).ok_or_else(|| NoIo {
        given: given.to_owned(),
        known: known.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", "),
    })
}

impl FromStr for IoType {
    type Err = NoIo;

    fn from_str(given: &str) -> Result<Self, NoIo> {
        named(given, &TYPES)
    }
}

impl FromStr for IoFormat {
    type Err = NoIo;

    fn from_str(given: &str) -> Result<Self, NoIo> {
        named(given, &FORMATS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_lies_as_nvidias_harness_stores_it() {
        let stored = |format: &str, dims: &[i64], bytes| {
            let format: IoFormat = format.parse().unwrap();
            assert_eq!(format.to_string().parse(), Ok(format));
            format.stored(dims, bytes)
        };
        let image = [3, 224, 224];
        assert_eq!(stored("linear", &image, 1), Some(vec![3, 224, 224]));
        assert_eq!(stored("chw4", &image, 1), Some(vec![1, 224, 224, 4]));
        assert_eq!(stored("dla_hwc4", &image, 1), Some(vec![224, 224, 4]));
        assert_eq!(stored("chw32", &[64, 7, 7], 1), Some(vec![2, 7, 7, 32]));
        assert_eq!(stored("chw16", &image, 2), Some(vec![1, 224, 224, 16]));
        assert_eq!(stored("hwc8", &[9, 5, 6], 2), Some(vec![5, 6, 16]));
        let volume = [4, 128, 64, 32];
        assert_eq!(stored("cdhw32", &volume, 1), Some(vec![1, 128, 64, 32, 32]));
        assert_eq!(stored("dhwc8", &volume, 2), Some(vec![128, 64, 32, 8]));
        assert_eq!(stored("dla_linear", &image, 1), Some(vec![3, 224, 256]));
        // Lines of 36 bytes would have gaps between them; 5 channels are not an image's.
        assert_eq!(stored("dla_hwc4", &[3, 9, 9], 1), None);
        assert_eq!(stored("dla_hwc4", &[5, 16, 16], 1), None);
        assert!("chw5".parse::<IoFormat>().is_err());
    }
}
