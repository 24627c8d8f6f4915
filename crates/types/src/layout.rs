//! Memory layouts of samples: the layouts of TensorRT, their names, and the shape of a sample in each. This module moves no data: `prep`
//! makes samples of a layout, and engines state the layout that they read.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::UnknownWord;

/// Layout of a tensor, named as in NVIDIA's harness. The numbers are those of `nvinfer1::TensorFormat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// Row-major, in the order of the shape.
    #[default]
    Linear = 0,
    /// Channels last, padded to a multiple of 8.
    Hwc8 = 2,
    /// Blocks of 4 channels.
    Chw4 = 3,
    /// Blocks of 16 channels; DLA's native layout for fp16.
    Chw16 = 4,
    /// Blocks of 32 channels; DLA's native layout for int8.
    Chw32 = 5,
    /// Channels last, padded to a multiple of 8, with a depth dimension.
    Dhwc8 = 6,
    /// Blocks of 32 channels, with a depth dimension.
    Cdhw32 = 7,
    /// DLA's linear layout. Its lines begin at multiples of 64 bytes.
    DlaLinear = 9,
    /// DLA's image layout: up to 4 channels, last.
    DlaHwc4 = 10,
}

const LAYOUTS: [(&str, Layout); 9] = [
    ("linear", Layout::Linear),
    ("hwc8", Layout::Hwc8),
    ("chw4", Layout::Chw4),
    ("chw16", Layout::Chw16),
    ("chw32", Layout::Chw32),
    ("dhwc8", Layout::Dhwc8),
    ("cdhw32", Layout::Cdhw32),
    ("dla_linear", Layout::DlaLinear),
    ("dla_hwc4", Layout::DlaHwc4),
];

/// Alignment of DLA's lines in memory, in bytes.
const DLA_LINE: usize = 64;

/// How a layout arranges the elements of a tensor whose first dimension is channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// No change.
    AsItIs,
    /// Channels in blocks of this size, innermost; zeros pad the last block.
    Blocks(usize),
    /// Channels innermost, padded with zeros to a multiple of this number.
    Last(usize),
    /// Lines padded with zeros to a multiple of this number of elements.
    Lines(usize),
}

impl Layout {
    /// The names of all layouts.
    pub const WORDS: [&'static str; LAYOUTS.len()] = {
        let mut words = [""; LAYOUTS.len()];
        let mut number = 0;
        while number < LAYOUTS.len() {
            words[number] = LAYOUTS[number].0;
            number += 1;
        }
        words
    };

    /// Returns the layout with this number in `nvinfer1::TensorFormat`.
    #[must_use]
    pub fn numbered(number: i32) -> Option<Self> {
        let found = LAYOUTS.iter().find(|(_, layout)| *layout as i32 == number);
        found.map(|(_, layout)| *layout)
    }

    /// Whether elements are in the order of the shape, without padding.
    #[must_use]
    pub fn is_linear(&self) -> bool {
        *self == Self::Linear
    }

    /// Returns the packing for elements of `element_bytes` bytes.
    #[must_use]
    pub const fn packing(self, element_bytes: usize) -> Packing {
        match self {
            Self::Linear => Packing::AsItIs,
            Self::Chw4 => Packing::Blocks(4),
            Self::Chw16 => Packing::Blocks(16),
            Self::Chw32 | Self::Cdhw32 => Packing::Blocks(32),
            Self::Hwc8 | Self::Dhwc8 => Packing::Last(8),
            Self::DlaHwc4 => Packing::Last(4),
            Self::DlaLinear => Packing::Lines(DLA_LINE / element_bytes),
        }
    }

    /// Returns the shape in memory of a sample whose tensor is `dims` (channels first, no batch), with elements of `element_bytes` bytes.
    /// Padding is zero. `None` when such a tensor cannot have the layout, or when DLA's lines would need gaps.
    #[must_use]
    pub fn stored(self, dims: &[usize], element_bytes: usize) -> Option<Vec<usize>> {
        if self.is_linear() {
            return Some(dims.to_vec());
        }
        let (&channels, inner) = dims.split_first()?;
        let width = *inner.last().unwrap_or(&1);
        if self == Self::DlaHwc4 {
            let line = width.checked_mul(4 * element_bytes)?;
            if channels > 4 || line % DLA_LINE != 0 {
                return None;
            }
        }
        match self.packing(element_bytes) {
            Packing::AsItIs => Some(dims.to_vec()),
            Packing::Blocks(of) => Some([&[channels.div_ceil(of)], inner, &[of]].concat()),
            Packing::Last(of) => Some([inner, &[channels.checked_next_multiple_of(of)?]].concat()),
            Packing::Lines(of) => {
                let (_, rows) = dims.split_last().filter(|(_, rows)| !rows.is_empty())?;
                Some([rows, &[width.checked_next_multiple_of(of)?]].concat())
            }
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = LAYOUTS.iter().find(|(_, layout)| layout == self);
        f.write_str(known.map_or("", |(word, _)| word))
    }
}

impl FromStr for Layout {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        let found = LAYOUTS.iter().find(|(word, _)| *word == text);
        found.map(|(_, layout)| *layout).ok_or_else(|| UnknownWord {
            kind: "layout",
            text: text.to_owned(),
            known: "linear, hwc8, chw4, chw16, chw32, dhwc8, cdhw32, dla_linear, dla_hwc4",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_lies_as_nvidias_harness_stores_it() {
        let stored = |word: &str, dims: &[usize], bytes| {
            let layout: Layout = word.parse().unwrap();
            assert_eq!(layout.to_string().parse(), Ok(layout));
            assert_eq!(Layout::numbered(layout as i32), Some(layout));
            layout.stored(dims, bytes)
        };
        let image = [3, 224, 224];
        assert_eq!(stored("linear", &image, 1), Some(vec![3, 224, 224]));
        assert_eq!(stored("linear", &[], 4), Some(vec![]));
        assert_eq!(stored("chw4", &image, 1), Some(vec![1, 224, 224, 4]));
        assert_eq!(stored("dla_hwc4", &image, 1), Some(vec![224, 224, 4]));
        assert_eq!(stored("chw32", &[64, 7, 7], 1), Some(vec![2, 7, 7, 32]));
        assert_eq!(stored("chw16", &image, 2), Some(vec![1, 224, 224, 16]));
        assert_eq!(stored("hwc8", &[9, 5, 6], 2), Some(vec![5, 6, 16]));
        let volume = [4, 128, 64, 32];
        assert_eq!(stored("cdhw32", &volume, 1), Some(vec![1, 128, 64, 32, 32]));
        assert_eq!(stored("dhwc8", &volume, 2), Some(vec![128, 64, 32, 8]));
        assert_eq!(stored("dla_linear", &image, 1), Some(vec![3, 224, 256]));
        // Lines of 36 bytes would have gaps between them; an image does not have 5 channels.
        assert_eq!(stored("dla_hwc4", &[3, 9, 9], 1), None);
        assert_eq!(stored("dla_hwc4", &[5, 16, 16], 1), None);
        let unknown = "chw5".parse::<Layout>().unwrap_err().to_string();
        assert!(
            unknown.contains(&LAYOUTS.map(|(word, _)| word).join(", ")),
            "{unknown}"
        );
        assert_eq!(Layout::numbered(1), None);
    }
}
