//! Versions of TensorRT: as its library gives them, as shims are named after them, and which shim fits which library.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A version of TensorRT, or of TensorRT-RTX, which counts on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Version {
    /// Whether it is TensorRT-RTX.
    pub rtx: bool,
    /// Major.
    pub major: u32,
    /// Minor.
    pub minor: u32,
    /// Patch.
    pub patch: u32,
}

impl Version {
    /// What `getInferLibVersion` returns: major * 1000 + minor * 100 + patch up to 9, major * 10000 from 10 on and in
    /// TensorRT-RTX.
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

    /// Whether a shim of this version serves a library of that one. TensorRT keeps its C++ interface within a major version
    /// for programs built against an older minor one; up to 9 nothing is promised beyond the minor version.
    #[must_use]
    pub const fn shim_serves(&self, library: &Self) -> bool {
        let same_major = self.rtx == library.rtx && self.major == library.major;
        if self.rtx || self.major >= 10 {
            same_major && self.minor <= library.minor
        } else {
            same_major && self.minor == library.minor
        }
    }

    /// Whether it finds the scales of INT8 by running samples. Later ones take them from the network alone.
    #[must_use]
    pub const fn calibrates(&self) -> bool {
        self.has_precision_flags()
    }

    /// Whether types can be allowed by flags beside the network's own. Later versions take them from the network alone.
    #[must_use]
    pub const fn has_precision_flags(&self) -> bool {
        !self.rtx && self.major < 11
    }

    /// Whether a network's own types are kept where no flag allows others: strongly typed networks.
    #[must_use]
    pub const fn keeps_types(&self) -> bool {
        self.rtx || self.major >= 10
    }

    /// Whether a shim of these headers tells of a build's steps, and can be told to give up.
    #[must_use]
    pub const fn tells_progress(&self) -> bool {
        self.rtx || self.major >= 10
    }

    /// What this version says of DLA, in words for an error.
    #[must_use]
    pub const fn dla(&self) -> &'static str {
        match (self.rtx, self.major, self.minor, self.patch) {
            (true, ..) => "TensorRT-RTX drives no DLA",
            (_, 10, 8.., _) | (_, 11, 0..=3, _) | (_, 11, 4, 0) => {
                "this version drives no DLA: 10.8 to 11.4.0 do not"
            }
            (_, 11.., ..) => "this version drives DLA on AGX Orin",
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

/// Not a version as shims are named.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no version of TensorRT, such as 10.3.0 or rtx-1.7.1")]
pub struct NoVersion(String);

impl FromStr for Version {
    type Err = NoVersion;

    fn from_str(given: &str) -> Result<Self, NoVersion> {
        let refused = || NoVersion(given.to_owned());
        let (rtx, numbers) = given
            .strip_prefix("rtx-")
            .map_or((false, given), |rest| (true, rest));
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
    type Error = NoVersion;

    fn try_from(given: String) -> Result<Self, NoVersion> {
        given.parse()
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
    fn library_numbers_of_all_times_are_read() {
        let read = |number, rtx| Version::from_library(number, rtx).to_string();
        assert_eq!(read(8502, false), "8.5.2");
        assert_eq!(read(8602, false), "8.6.2");
        assert_eq!(read(100_300, false), "10.3.0");
        assert_eq!(read(101_602, false), "10.16.2");
        assert_eq!(read(110_401, false), "11.4.1");
        assert_eq!(read(10_701, true), "rtx-1.7.1");
    }

    /// 8.5 to 10.7 yes, none in 10.8 to 11.3, back in 11.4.1 for AGX Orin.
    #[test]
    fn dla_is_a_fact_of_the_version() {
        let drives = |version: &str| {
            version
                .parse::<Version>()
                .unwrap()
                .dla()
                .starts_with("this version drives DLA")
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
    fn a_shim_serves_its_minor_version_and_from_10_on_later_ones() {
        let serves = |shim: &str, library: &str| {
            shim.parse::<Version>()
                .unwrap()
                .shim_serves(&library.parse().unwrap())
        };
        assert!(serves("8.5.3", "8.5.2"));
        assert!(!serves("8.5.3", "8.6.2"));
        assert!(serves("10.3.0", "10.16.2"));
        assert!(!serves("10.16.2", "10.3.0"));
        assert!(!serves("10.3.0", "11.0.0"));
        assert!(!serves("rtx-1.7.1", "10.7.1"));
    }
}
