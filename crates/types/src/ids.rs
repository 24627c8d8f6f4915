//! Names that are sent over the network and become file names: run ids, device ids, stream names.
//!
//! Each type only holds names that are safe as one MQTT topic level and as one path component. A hostile message can therefore not reach
//! outside its directory. User-defined labels are not in this module.

use std::{fmt, str::FromStr};

use regatta_fsutil::hash::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// The error for a name with an invalid form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a {kind}: {reason}")]
pub struct InvalidName {
    /// The kind of name that was expected.
    pub kind: &'static str,
    /// The rejected text, truncated to 64 characters.
    pub text: String,
    /// Why it is rejected.
    pub reason: &'static str,
}

impl InvalidName {
    fn new(kind: &'static str, text: &str, reason: &'static str) -> Self {
        Self {
            kind,
            text: text.chars().take(64).collect(),
            reason,
        }
    }
}

/// Unique id of one run: a UUIDv7, so that ids sort by the time of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(Uuid);

impl RunId {
    /// Creates a new id with the current time.
    #[must_use]
    pub fn now() -> Self {
        Self(Uuid::now_v7())
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0.hyphenated().encode_lower(&mut Uuid::encode_buffer()))
    }
}

impl FromStr for RunId {
    type Err = InvalidName;

    /// Accepts only the spelling that [`fmt::Display`] writes. Ids are topics and directories, where another spelling of the same id would
    /// be a different one.
    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let refused = |reason| InvalidName::new("run id", text, reason);
        let id = Uuid::try_parse(text).map_err(|_| refused("not a UUID"))?;
        let mut buffer = Uuid::encode_buffer();
        if id.hyphenated().encode_lower(&mut buffer) == text {
            Ok(Self(id))
        } else {
            Err(refused("not spelt in lower case with hyphens"))
        }
    }
}

/// Id of a device: the first 32 hexadecimal digits of the SHA-256 of its Ed25519 public key.
///
/// A device's name is a label that users may change. The id stays the same as long as the key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DeviceId(String);

impl DeviceId {
    /// Number of digits in an id.
    pub const DIGITS: usize = 32;

    /// Returns the id of the device with this Ed25519 public key.
    #[must_use]
    pub fn of_public_key(key: &[u8; 32]) -> Self {
        let fingerprint = Sha256::digest(key);
        Self(hex(&fingerprint[..Self::DIGITS / 2]))
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for DeviceId {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let lower_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if text.len() == Self::DIGITS && text.bytes().all(lower_hex) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidName::new(
                "device id",
                text,
                "not 32 lower-case hexadecimal digits",
            ))
        }
    }
}

/// The name of one file of a run, in messages and on the disks of device and coordinator.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct StreamName(String);

impl StreamName {
    /// Longest accepted name, in bytes.
    pub const MAX_LEN: usize = 64;

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for StreamName {
    type Err = InvalidName;

    /// Accepts letters, digits, `.`, `_` and `-`; the first character is not a dot.
    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let reason = if text.is_empty() {
            "empty"
        } else if text.len() > Self::MAX_LEN {
            "longer than 64 bytes"
        } else if text.starts_with('.') {
            "begins with a dot"
        } else if !text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
        {
            "contains characters other than letters, digits, `.`, `_` and `-`"
        } else {
            return Ok(Self(text.to_owned()));
        };
        Err(InvalidName::new("stream name", text, reason))
    }
}

macro_rules! serde_as_text {
    ($($name:ty),*) => {$(
        impl TryFrom<String> for $name {
            type Error = InvalidName;
            fn try_from(text: String) -> Result<Self, InvalidName> {
                text.parse()
            }
        }
        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.to_string()
            }
        }
    )*};
}
serde_as_text!(RunId, DeviceId, StreamName);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_id_has_one_spelling() {
        let id = RunId::now();
        assert_eq!(id.to_string().parse(), Ok(id));
        let plain = id.to_string().replace('-', "");
        for other in [
            id.to_string().to_uppercase(),
            plain,
            format!("{{{id}}}"),
            format!("urn:uuid:{id}"),
        ] {
            assert!(other.parse::<RunId>().is_err(), "{other}");
        }
    }
}
