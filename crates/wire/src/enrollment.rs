//! Enrollment: a device gets its certificate, and its private key never leaves it.
//!
//! The coordinator issues an [`EnrollmentToken`], which a person copies, scans or types. The device connects over TLS 1.3 to the
//! address in the token. It only accepts a certificate from the authority whose fingerprint is in the token. It sends one
//! [`EnrollRequest`]; the coordinator answers with one [`EnrollResponse`]. Both are ordinary frames.
//!
//! The request contains the device's signature over the token, the public key, and bytes that both ends derive from this
//! TLS connection. The token without the key, or a recorded request, is therefore useless to an attacker. This file opens
//! no connection and checks no signature.

use std::{fmt, str::FromStr};

use regatta_fsutil::hash::unhex;
use serde::{Deserialize, Serialize};

use crate::{FrameKind, message::Message};

/// The server name in the certificates of the broker and of the enrollment listener. Devices expect this name at every
/// address, so that a coordinator can change its address or have several.
pub const SERVER_NAME: &str = "regatta-broker";
/// The TLS exporter label under which both ends derive bytes of their connection (RFC 8446, 7.5).
pub const EXPORTER_LABEL: &[u8] = b"EXPORTER-regatta-enrollment";
/// The number of bytes derived under [`EXPORTER_LABEL`].
pub const EXPORTER_LEN: usize = 32;
/// The largest frame of an [`EnrollRequest`], in bytes.
pub const MAX_REQUEST_LEN: usize = 1024;
/// The largest frame of an [`EnrollResponse`], in bytes.
pub const MAX_RESPONSE_LEN: usize = 32 * 1024;

const SCHEME: &str = "regatta-enroll://";
const CONTEXT: &[u8] = b"regatta enrollment 1\0";

/// A one-time token that lets one device enroll until it expires: `regatta-enroll://HOST:PORT/FINGERPRINT/SECRET`.
#[derive(Clone, PartialEq, Eq)]
pub struct EnrollmentToken {
    /// The host of the coordinator's enrollment listener. An IPv6 address has no brackets.
    pub host: String,
    /// The TCP port of the enrollment listener.
    pub port: u16,
    /// SHA-256 of the authority's certificate (DER).
    pub authority: [u8; 32],
    /// The secret by which the coordinator recognises the token.
    pub secret: [u8; 16],
}

/// The error for a text that is not an enrollment token. It does not repeat the text, which may contain a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "not an enrollment token of the form {SCHEME}HOST:PORT/FINGERPRINT/SECRET; hint: copy the token that `regatta device add` prints"
)]
pub struct InvalidEnrollmentToken;

impl fmt::Display for EnrollmentToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "{SCHEME}[{}]:{}/", self.host, self.port)?;
        } else {
            write!(f, "{SCHEME}{}:{}/", self.host, self.port)?;
        }
        self.authority
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str("/")?;
        self.secret.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for EnrollmentToken {
    /// Leaves the secret out: more people read logs than may enroll a device.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EnrollmentToken({}:{})", self.host, self.port)
    }
}

impl FromStr for EnrollmentToken {
    type Err = InvalidEnrollmentToken;

    fn from_str(text: &str) -> Result<Self, InvalidEnrollmentToken> {
        let rest = text.trim().strip_prefix(SCHEME).ok_or(InvalidEnrollmentToken)?;
        let mut parts = rest.split('/');
        let (Some(address), Some(authority), Some(secret), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(InvalidEnrollmentToken);
        };
        let (host, port) = address.rsplit_once(':').ok_or(InvalidEnrollmentToken)?;
        let host = match host.strip_prefix('[') {
            Some(bracketed) => bracketed.strip_suffix(']').ok_or(InvalidEnrollmentToken)?,
            None => host,
        };
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
        if host.is_empty() || host.len() > 255 || !host.chars().all(allowed) {
            return Err(InvalidEnrollmentToken);
        }
        Ok(Self {
            host: host.to_owned(),
            port: port
                .parse()
                .ok()
                .filter(|port| *port != 0)
                .ok_or(InvalidEnrollmentToken)?,
            authority: unhex_array(authority).ok_or(InvalidEnrollmentToken)?,
            secret: unhex_array(secret).ok_or(InvalidEnrollmentToken)?,
        })
    }
}

/// Decodes `N` bytes from exactly `2 * N` hexadecimal digits.
fn unhex_array<const N: usize>(digits: &str) -> Option<[u8; N]> {
    unhex(digits)?.try_into().ok()
}

/// The purpose of an [`EnrollRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EnrollPurpose {
    /// Enrolls the device with a token.
    Enroll {
        /// The token's secret.
        secret: [u8; 16],
    },
    /// Renews the certificate of an enrolled device.
    Renew,
    /// Enrolls the device with a token, also if it is enrolled under another name.
    Rename {
        /// The token's secret.
        secret: [u8; 16],
    },
}

/// A device's request for a certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnrollRequest {
    /// Enrollment or renewal.
    pub purpose: EnrollPurpose,
    /// The device's Ed25519 public key.
    pub public_key: [u8; 32],
    /// The Ed25519 signature over [`Self::statement`] by that key, 64 bytes.
    pub proof: Vec<u8>,
}
impl Message for EnrollRequest {
    const KIND: FrameKind = FrameKind::EnrollRequest;
}

impl EnrollRequest {
    /// Returns the bytes that the device signs. `connection` is derived from the TLS connection with [`EXPORTER_LABEL`].
    #[must_use]
    pub fn statement(
        purpose: &EnrollPurpose,
        public_key: &[u8; 32],
        connection: &[u8; EXPORTER_LEN],
    ) -> Vec<u8> {
        let mut bytes = CONTEXT.to_vec();
        bytes.extend_from_slice(connection);
        bytes.extend_from_slice(public_key);
        match purpose {
            EnrollPurpose::Enroll { secret } => {
                bytes.push(0);
                bytes.extend_from_slice(secret);
            }
            EnrollPurpose::Renew => bytes.push(1),
            EnrollPurpose::Rename { secret } => {
                bytes.push(2);
                bytes.extend_from_slice(secret);
            }
        }
        bytes
    }
}

/// The coordinator's response to an [`EnrollRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EnrollResponse {
    /// The coordinator has enrolled the device.
    Accepted(Credentials),
    /// The coordinator has refused the device for this reason. The same request will be refused again.
    Refused(String),
    /// The coordinator cannot decide now, for this reason. The device may send the same token again later.
    NotNow(String),
    /// The device is enrolled under another name than the token's. The token is not used.
    OtherName {
        /// The name under which the device is enrolled.
        enrolled: String,
        /// The token's name.
        token: String,
    },
    /// The device was removed. Its key stays refused. The token is not used.
    Removed {
        /// The name that the device had.
        name: String,
    },
}
impl Message for EnrollResponse {
    const KIND: FrameKind = FrameKind::EnrollResponse;
}

/// The certificate, keys and addresses that an enrolled device uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credentials {
    /// The device's name at the coordinator.
    pub name: String,
    /// The device's certificate for its own key, PEM.
    pub certificate: String,
    /// The time at which the certificate expires: RFC 3339, UTC.
    pub not_after: String,
    /// The certificate of the lab's authority, PEM.
    pub authority: String,
    /// The Ed25519 public key that verifies the coordinator's commands.
    pub coordinator_key: [u8; 32],
    /// The broker's address: `mqtts://host:port`.
    pub broker: String,
    /// The enrollment listener's address for renewals: `host:port`.
    pub enrollment: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(host: &str) -> EnrollmentToken {
        EnrollmentToken {
            host: host.to_owned(),
            port: 8884,
            authority: [0xab; 32],
            secret: [0x01; 16],
        }
    }

    #[test]
    fn a_token_round_trips_and_debug_hides_its_secret() {
        for host in ["10.0.0.5", "lab.local", "fe80::1"] {
            let token = token(host);
            assert_eq!(token.to_string().parse::<EnrollmentToken>().as_ref(), Ok(&token));
            assert!(!format!("{token:?}").contains("0101"), "{token:?}");
        }
    }

    #[test]
    fn an_invalid_token_is_refused_without_repeating_it() {
        let good = token("lab").to_string();
        for bad in [
            "",
            "regatta-enroll://",
            &good[..good.len() - 1],
            &format!("{good}0"),
            &format!("{good}/x"),
            &good.replace("lab", ""),
            &good.replace("lab", "../../etc"),
            &good.replace("lab", "a b"),
            &good.replace("8884", "0"),
            &good.replace("8884", "99999"),
            &good.replace("abab", "zzzz"),
            &format!(
                "regatta-enroll://{}:1/{}/{}",
                "x".repeat(10_000),
                "ab".repeat(32),
                "01".repeat(16)
            ),
        ] {
            let error = bad.parse::<EnrollmentToken>().unwrap_err().to_string();
            assert!(error.contains("regatta device add") && error.len() < 200, "{bad}");
        }
    }
}
