//! The scale of whole numbers: out of TensorRT's calibration cache, and how floats become whole numbers by it.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use regatta_rules::samples::{Quantised, Rounding};

/// A scale that cannot be had from a calibration cache.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScaleError {
    /// The file does not read.
    #[error("cannot read the calibration cache {path}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// Not TensorRT's text format.
    #[error("{path} is no calibration cache: its first line is not TRT-VERSION-CALIBRATOR", path = path.display())]
    NoCache {
        /// The file.
        path: PathBuf,
    },
    /// The tensor is not in it.
    #[error("the calibration cache {path} has no tensor `{tensor}`; its first is `{first}`", path = path.display())]
    NoTensor {
        /// The file.
        path: PathBuf,
        /// What was looked for.
        tensor: String,
        /// The tensor of its first line, which is often the input.
        first: String,
    },
    /// The tensor's number is no scale.
    #[error("the calibration cache {path} gives `{tensor}` the scale `{given}`, which is none", path = path.display())]
    NoScale {
        /// The file.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// As it stands there.
        given: String,
    },
}

/// The scale of a tensor in a calibration cache in TensorRT's text format: a line `NAME: HEX` per tensor, where HEX is the
/// scale's bits as a 32-bit float, the greatest digit first.
///
/// # Errors
/// [`ScaleError`].
pub fn scale_in_cache(path: &Path, tensor: &str) -> Result<f32, ScaleError> {
    let text = fs::read_to_string(path).map_err(|source| ScaleError::Read {
        path: path.to_owned(),
        source,
    })?;
    let mut lines = text.lines();
    if !lines.next().is_some_and(|first| first.starts_with("TRT-")) {
        return Err(ScaleError::NoCache {
            path: path.to_owned(),
        });
    }
    // Names may hold colons.
    let mut entries = lines.filter_map(|line| line.rsplit_once(": "));
    let first = entries.clone().next().map_or("", |(name, _)| name);
    let Some((_, given)) = entries.find(|(name, _)| *name == tensor) else {
        return Err(ScaleError::NoTensor {
            path: path.to_owned(),
            tensor: tensor.to_owned(),
            first: first.to_owned(),
        });
    };
    let scale = u32::from_str_radix(given.trim(), 16).map(f32::from_bits);
    scale
        .ok()
        .filter(|scale| scale.is_normal() && *scale > 0.0)
        .ok_or_else(|| ScaleError::NoScale {
            path: path.to_owned(),
            tensor: tensor.to_owned(),
            given: given.to_owned(),
        })
}

/// A float as a whole number of steps, and whether it lay beyond them.
pub(crate) fn quantise(value: f32, by: &Quantised) -> (i8, bool) {
    let steps = value / by.scale;
    let whole = match by.rounding {
        Rounding::TowardZero => steps.trunc(),
        Rounding::Nearest => steps.round_ties_even(),
    };
    // A cast holds within the ends.
    (whole as i8, !(-128.0..=127.0).contains(&whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(scale: f32, rounding: Rounding) -> Quantised {
        Quantised {
            scale,
            rounding,
            source: String::new(),
        }
    }

    /// ResNet50: pixels without their mean, cut off. RetinaNet: by the scale of its calibration cache.
    #[test]
    fn floats_become_what_nvidias_preprocessing_makes_of_them() {
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
    fn a_scale_stands_in_the_cache_or_is_told_to_be_missing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("resnet50.cache");
        let said = |text: &str, tensor: &str| {
            fs::write(&path, text).unwrap();
            scale_in_cache(&path, tensor)
                .map_err(|error| error.to_string().replace(&path.display().to_string(), "FILE"))
        };
        let cache = "TRT-8001-EntropyCalibration2\ninput_tensor:0: 3f810204\nscores: 00000000\n";
        assert_eq!(said(cache, "input_tensor:0"), Ok(f32::from_bits(0x3f81_0204)));
        let told = [
            said(cache, "image").unwrap_err(),
            said(cache, "scores").unwrap_err(),
            said("1: 2\n", "1").unwrap_err(),
        ];
        assert_eq!(
            told,
            [
                "the calibration cache FILE has no tensor `image`; its first is `input_tensor:0`",
                "the calibration cache FILE gives `scores` the scale `00000000`, which is none",
                "FILE is no calibration cache: its first line is not TRT-VERSION-CALIBRATOR",
            ]
        );
    }
}
