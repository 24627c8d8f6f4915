//! Versions of TensorRT: parsing, formatting, the features of each version, and the libraries that a shim supports.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A version of TensorRT, or of TensorRT-RTX, which has its own numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Version {
    /// Whether this is a version of TensorRT-RTX.
    pub rtx: bool,
    /// The major version.
    pub major: u32,
    /// The minor version.
    pub minor: u32,
    /// The patch version.
    pub patch: u32,
}

impl Version {
    /// Converts the result of `getInferLibVersion`: major * 1000 + minor * 100 + patch up to version 9, and major * 10000
    /// + minor * 100 + patch from version 10 on and in TensorRT-RTX.
    #[must_use]
    pub const fn from_library(number: u32, rtx: bool) -> Self {
        let (majors, rest) = if rtx || number >= 100_000 {
            (10_000, 10_000)
        } else {
            (1_000, 1_000)
        };
        Self {
            rtx,
            major: number / majors,
            minor: number % rest / 100,
            patch: number % 100,
        }
    }

    /// Returns whether a shim that was compiled with this version's headers works with a library. From version 10 on,
    /// TensorRT keeps its C++ interface compatible within a major version; before, only within a minor version.
    #[must_use]
    pub const fn shim_supports(&self, library: &Self) -> bool {
        let same_major = self.rtx == library.rtx && self.major == library.major;
        if self.rtx || self.major >= 10 {
            same_major && self.minor <= library.minor
        } else {
            same_major && self.minor == library.minor
        }
    }

    /// Returns whether this version can find INT8 scales by calibration. Later versions only read them from the network.
    #[must_use]
    pub const fn has_calibration(&self) -> bool {
        self.has_precision_flags()
    }

    /// Returns whether builder flags can allow other precisions than the network's. Later versions only use the network's.
    #[must_use]
    pub const fn has_precision_flags(&self) -> bool {
        !self.rtx && self.major < 11
    }

    /// Returns whether networks are strongly typed: without a precision flag, every tensor keeps the network's type.
    #[must_use]
    pub const fn is_strongly_typed(&self) -> bool {
        self.rtx || self.major >= 10
    }

    /// Returns whether a shim with these headers reports a build's progress and can cancel it.
    #[must_use]
    pub const fn reports_progress(&self) -> bool {
        self.rtx || self.major >= 10
    }

    /// Returns whether this version drives DLA on chips that have it.
    #[must_use]
    pub const fn drives_dla(&self) -> bool {
        !self.rtx
            && !matches!(
                (self.major, self.minor, self.patch),
                (10, 8.., _) | (11, 0..=3, _) | (11, 4, 0)
            )
    }

    /// Returns a sentence about this version's support for DLA, for errors.
    #[must_use]
    pub const fn dla_support(&self) -> &'static str {
        match (self.rtx, self.drives_dla(), self.major) {
            (true, ..) => "TensorRT-RTX drives no DLA",
            (_, false, _) => "this version drives no DLA: 10.8 to 11.4.0 do not",
            (_, _, 11..) => "this version drives DLA on AGX Orin",
            _ => "this version drives DLA where the chip has it",
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rtx = if self.rtx { "rtx-" } else { "" };
        write!(f, "{rtx}{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// The error for a text that is not a version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a version of TensorRT, such as 10.3.0 or rtx-1.7.1")]
pub struct InvalidVersion(String);

impl FromStr for Version {
    type Err = InvalidVersion;

    fn from_str(text: &str) -> Result<Self, InvalidVersion> {
        let refused = || InvalidVersion(text.to_owned());
        let (rtx, numbers) = text
            .strip_prefix("rtx-")
            .map_or((false, text), |rest| (true, rest));
        let parts: Result<Vec<u32>, _> = numbers.split('.').map(str::parse).collect();
        match parts.map_err(|_| refused())?.as_slice() {
            &[major, minor, patch] => Ok(Self {
                rtx,
                major,
                minor,
                patch,
            }),
            _ => Err(refused()),
        }
    }
}

impl TryFrom<String> for Version {
    type Error = InvalidVersion;

    fn try_from(text: String) -> Result<Self, InvalidVersion> {
        text.parse()
    }
}

impl From<Version> for String {
    fn from(version: Version) -> Self {
        version.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn library_numbers_of_all_versions_are_parsed() {
        let read = |number, rtx| Version::from_library(number, rtx).to_string();
        assert_eq!(read(8502, false), "8.5.2");
        assert_eq!(read(8602, false), "8.6.2");
        assert_eq!(read(100_300, false), "10.3.0");
        assert_eq!(read(101_602, false), "10.16.2");
        assert_eq!(read(110_401, false), "11.4.1");
        assert_eq!(read(10_701, true), "rtx-1.7.1");
    }

    /// TensorRT supports DLA in 8.5 to 10.7, not in 10.8 to 11.4.0, and again from 11.4.1 on for AGX Orin.
    #[test]
    fn dla_support_depends_on_the_version() {
        let drives = |version: &str| {
            let version = version.parse::<Version>().unwrap();
            let by_sentence = version.dla_support().starts_with("this version drives DLA");
            assert_eq!(version.drives_dla(), by_sentence, "{version}");
            by_sentence
        };
        for with in ["8.5.2", "8.6.2", "10.3.0", "10.7.0", "11.4.1", "11.5.0"] {
            assert!(drives(with), "{with}");
        }
        for without in [
            "10.8.0",
            "10.13.3",
            "10.16.2",
            "11.0.0",
            "11.3.0",
            "11.4.0",
            "rtx-1.7.1",
        ] {
            assert!(!drives(without), "{without}");
        }
    }

    #[test]
    fn a_shim_supports_its_minor_version_and_from_10_on_later_ones() {
        let serves = |shim: &str, library: &str| {
            shim.parse::<Version>()
                .unwrap()
                .shim_supports(&library.parse().unwrap())
        };
        assert!(serves("8.5.3", "8.5.2"));
        assert!(!serves("8.5.3", "8.6.2"));
        assert!(serves("10.3.0", "10.16.2"));
        assert!(!serves("10.16.2", "10.3.0"));
        assert!(!serves("10.3.0", "11.0.0"));
        assert!(!serves("rtx-1.7.1", "10.7.1"));
    }
}
