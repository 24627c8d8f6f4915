//! How TensorRT finds INT8 scales with samples, and how it names that in a calibration cache.

use serde::{Deserialize, Serialize};

/// The interface of TensorRT with which scales are found. TensorRT 11 has none of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CalibrationMethod {
    /// `IInt8EntropyCalibrator2`.
    #[default]
    Entropy,
    /// `IInt8MinMaxCalibrator`.
    MinMax,
}

impl CalibrationMethod {
    /// Returns the method that made a calibration cache, as its first line names it. `None` for other methods and other text.
    #[must_use]
    pub fn of_cache(cache: &[u8]) -> Option<Self> {
        let line = cache.split(|&byte| byte == b'\n').next()?.trim_ascii_end();
        if !line.starts_with(b"TRT-") {
            None
        } else if line.ends_with(b"-EntropyCalibration2") {
            Some(Self::Entropy)
        } else if line.ends_with(b"-MinMaxCalibration") {
            Some(Self::MinMax)
        } else {
            None
        }
    }

    /// Returns the word of the setting and of the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Entropy => "entropy",
            Self::MinMax => "min-max",
        }
    }

    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn method_is_in_the_first_line_of_a_cache() {
        for (text, method) in [
            (
                "TRT-8502-EntropyCalibration2\nimage: 3d800000\n",
                Some(CalibrationMethod::Entropy),
            ),
            (
                "TRT-8001-MinMaxCalibration\r\nimage: 3d800000\n",
                Some(CalibrationMethod::MinMax),
            ),
            ("TRT-8502-EntropyCalibration\nimage: 3d800000\n", None),
            ("image: 3d800000 TRT-8502-MinMaxCalibration\n", None),
            ("", None),
        ] {
            assert_eq!(CalibrationMethod::of_cache(text.as_bytes()), method, "{text}");
        }
    }
}
