//! Quantisation of floats to 8-bit integers, and the scale for it from TensorRT's calibration cache.

use std::{
    io,
    path::{Path, PathBuf},
};

use regatta_fsutil::regular_file;
use regatta_types::samples::{Quantised, Rounding};

/// The error when a scale cannot be read from a calibration cache.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScaleError {
    /// The file cannot be read.
    #[error("cannot read the calibration cache {path}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The file is not in TensorRT's text format.
    #[error("{path} is not a calibration cache: its first line is not TRT-VERSION-CALIBRATOR", path = path.display())]
    NotACache {
        /// The file.
        path: PathBuf,
    },
    /// The cache does not contain the tensor.
    #[error("the calibration cache {path} has no tensor `{tensor}`; its first is `{first}`", path = path.display())]
    MissingTensor {
        /// The file.
        path: PathBuf,
        /// The requested tensor.
        tensor: String,
        /// The tensor in the first line, which is often the input.
        first: String,
    },
    /// The tensor's scale is invalid.
    #[error("the calibration cache {path} has the invalid scale `{text}` for the tensor `{tensor}`", path = path.display())]
    InvalidScale {
        /// The file.
        path: PathBuf,
        tensor: String,
        /// The scale's text.
        text: String,
    },
}

/// Reads the scale of a tensor from a calibration cache in TensorRT's text format. It has a line `NAME: HEX` per tensor,
/// where HEX contains the bits of the scale as a 32-bit float, highest digit first.
///
/// # Errors
/// [`ScaleError`] when the file is not a calibration cache, or has no valid scale for the tensor.
pub fn read_calibration_scale(path: &Path, tensor: &str) -> Result<f32, ScaleError> {
    let text = regular_file::read_text(path).map_err(|source| ScaleError::Read {
        path: path.to_owned(),
        source,
    })?;
    let mut lines = text.lines();
    if !lines.next().is_some_and(|first| first.starts_with("TRT-")) {
        return Err(ScaleError::NotACache {
            path: path.to_owned(),
        });
    }
    // Names may contain colons.
    let mut entries = lines.filter_map(|line| line.rsplit_once(": "));
    let first = entries.clone().next().map_or("", |(name, _)| name);
    let Some((_, digits)) = entries.find(|(name, _)| *name == tensor) else {
        return Err(ScaleError::MissingTensor {
            path: path.to_owned(),
            tensor: tensor.to_owned(),
            first: first.to_owned(),
        });
    };
    let scale = u32::from_str_radix(digits.trim(), 16).map(f32::from_bits);
    scale
        .ok()
        .filter(|scale| scale.is_normal() && *scale > 0.0)
        .ok_or_else(|| ScaleError::InvalidScale {
            path: path.to_owned(),
            tensor: tensor.to_owned(),
            text: digits.to_owned(),
        })
}

/// Quantises a float. Returns the integer, and whether the float was out of range and was clipped.
pub(crate) fn quantise(value: f32, by: &Quantised) -> (i8, bool) {
    let steps = value / by.scale;
    let whole = match by.rounding {
        Rounding::TowardZero => steps.trunc(),
        Rounding::Nearest => steps.round_ties_even(),
    };
    // The cast saturates.
    (whole as i8, !(-128.0..=127.0).contains(&whole))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn by(scale: f32, rounding: Rounding) -> Quantised {
        Quantised {
            scale,
            rounding,
            source: String::new(),
        }
    }

    /// ResNet50 truncates pixels minus their mean. RetinaNet uses the scale of its calibration cache.
    #[test]
    fn floats_are_quantised_as_in_nvidias_preprocessing() {
        let image = |value| quantise(value, &by(1.0, Rounding::TowardZero));
        assert_eq!(image(1.9), (1, false));
        assert_eq!(image(-1.9), (-1, false));
        assert_eq!(image(151.06), (127, true));
        assert_eq!(image(-128.5), (-128, false));
        assert_eq!(image(-129.0), (-128, true));
        let normalised = |value| quantise(value, &by(f32::from_bits(0x3caa_54fc), Rounding::TowardZero)).0;
        assert_eq!((normalised(2.65), normalised(-2.117_9)), (127, -101));
        let nearest = |value| quantise(value, &by(0.5, Rounding::Nearest)).0;
        assert_eq!([0.25, 0.75, -0.3, 0.26].map(nearest), [0, 2, -1, 1]);
    }

    #[test]
    fn a_scale_is_read_from_the_cache_or_reported_as_missing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("resnet50.cache");
        let read = |text: &str, tensor: &str| {
            fs::write(&path, text).unwrap();
            read_calibration_scale(&path, tensor)
                .map_err(|error| error.to_string().replace(&path.display().to_string(), "FILE"))
        };
        let cache = "TRT-8001-EntropyCalibration2\ninput_tensor:0: 3f810204\nscores: 00000000\n";
        assert_eq!(read(cache, "input_tensor:0"), Ok(f32::from_bits(0x3f81_0204)));
        let errors = [
            read(cache, "image").unwrap_err(),
            read(cache, "scores").unwrap_err(),
            read("1: 2\n", "1").unwrap_err(),
        ];
        assert_eq!(
            errors,
            [
                "the calibration cache FILE has no tensor `image`; its first is `input_tensor:0`",
                "the calibration cache FILE has the invalid scale `00000000` for the tensor `scores`",
                "FILE is not a calibration cache: its first line is not TRT-VERSION-CALIBRATOR",
            ]
        );
    }
}
