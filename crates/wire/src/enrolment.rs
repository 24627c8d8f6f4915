//! Enrolment: how a device gets its certificate without its private key ever leaving it.
//!
//! The coordinator hands out a [`Token`] (by a person's hands: copied, scanned, typed). The device connects to the address
//! in the token over TLS 1.3, accepts only a certificate below the authority whose fingerprint stands in the token, and
//! sends one [`EnrolRequest`]. The coordinator answers with one [`EnrolAnswer`]. Both are ordinary frames.
//!
//! The request carries a signature by the device's key over the token, the key, and bytes that both ends derive from this
//! one TLS connection: whoever has the token but not the key, or records a request, has nothing.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::message::Message;

/// The name that the broker's and the enrolment's certificates carry. Devices ask for it, whatever address they connect
/// to, so that a coordinator may move or have several addresses.
pub const SERVER_NAME: &str = "regatta-broker";
/// The label under which both ends derive the connection's own bytes (RFC 8446, 7.5).
pub const EXPORTER_LABEL: &[u8] = b"EXPORTER-regatta-enrolment";
/// Number of those bytes.
pub const EXPORTER_LEN: usize = 32;
/// Largest request, as a frame.
pub const LARGEST_REQUEST: usize = 1024;
/// Largest answer, as a frame.
pub const LARGEST_ANSWER: usize = 32 * 1024;

const SCHEME: &str = "regatta-enrol://";
const CONTEXT: &[u8] = b"regatta enrolment 1\0";

/// Lets one device enrol, once, for a while: `regatta-enrol://HOST:PORT/FINGERPRINT/SECRET`.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    /// Where the coordinator takes enrolments; an IPv6 address without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// SHA-256 of the authority's certificate (DER).
    pub authority: [u8; 32],
    /// What the coordinator knows the token by.
    pub secret: [u8; 16],
}

/// A text that is no token. Does not repeat it: it may hold a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "not an enrolment token: it is written {SCHEME}HOST:PORT/FINGERPRINT/SECRET, as `regatta device add` prints it"
)]
pub struct InvalidToken;

impl fmt::Display for Token {
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

impl fmt::Debug for Token {
    /// Without the secret: logs are read by more people than may enrol a device.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({}:{})", self.host, self.port)
    }
}

impl FromStr for Token {
    type Err = InvalidToken;

    fn from_str(given: &str) -> Result<Self, InvalidToken> {
        let rest = given.trim().strip_prefix(SCHEME).ok_or(InvalidToken)?;
        let mut parts = rest.split('/');
        let (Some(address), Some(authority), Some(secret), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(InvalidToken);
        };
        let (host, port) = address.rsplit_once(':').ok_or(InvalidToken)?;
        let host = match host.strip_prefix('[') {
            Some(bracketed) => bracketed.strip_suffix(']').ok_or(InvalidToken)?,
            None => host,
        };
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
        if host.is_empty() || host.len() > 255 || !host.chars().all(allowed) {
            return Err(InvalidToken);
        }
        Ok(Self {
            host: host.to_owned(),
            port: port.parse().ok().filter(|port| *port != 0).ok_or(InvalidToken)?,
            authority: bytes(authority).ok_or(InvalidToken)?,
            secret: bytes(secret).ok_or(InvalidToken)?,
        })
    }
}

/// Reads exactly `N` bytes of hexadecimal digits.
fn bytes<const N: usize>(digits: &str) -> Option<[u8; N]> {
    if digits.len() != 2 * N || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

/// What a device asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Purpose {
    /// To be taken in, by a token's secret.
    Enrol {
        /// The secret.
        secret: [u8; 16],
    },
    /// A fresh certificate for a device that is enrolled.
    Renew,
}

/// A device asks for a certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnrolRequest {
    /// What it asks for.
    pub purpose: Purpose,
    /// Its Ed25519 public key; the private one stays where it is.
    pub public_key: [u8; 32],
    /// Ed25519 over [`Self::statement`] by that key; 64 bytes.
    pub proof: Vec<u8>,
}
impl Message for EnrolRequest {
    const KIND: u8 = 9;
}

impl EnrolRequest {
    /// The bytes that the device signs. `connection` is derived from the TLS connection with [`EXPORTER_LABEL`].
    #[must_use]
    pub fn statement(purpose: &Purpose, public_key: &[u8; 32], connection: &[u8; EXPORTER_LEN]) -> Vec<u8> {
        let mut bytes = CONTEXT.to_vec();
        bytes.extend_from_slice(connection);
        bytes.extend_from_slice(public_key);
        match purpose {
            Purpose::Enrol { secret } => {
                bytes.push(0);
                bytes.extend_from_slice(secret);
            }
            Purpose::Renew => bytes.push(1),
        }
        bytes
    }
}

/// What the coordinator answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EnrolAnswer {
    /// The device belongs to the fleet.
    Accepted(Credentials),
    /// It does not, and why. Asking again changes nothing.
    Refused(String),
    /// The coordinator cannot say now, and why: the device asks again later, with the same token.
    NotNow(String),
}
impl Message for EnrolAnswer {
    const KIND: u8 = 10;
}

/// What a device needs to take part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credentials {
    /// The name under which the coordinator knows the device.
    pub name: String,
    /// The device's certificate over its own key, PEM.
    pub certificate: String,
    /// When it ends: RFC 3339, UTC.
    pub not_after: String,
    /// The lab's authority, PEM.
    pub authority: String,
    /// The Ed25519 key by which the coordinator signs its commands.
    pub coordinator_key: [u8; 32],
    /// The broker: `mqtts://host:port`.
    pub broker: String,
    /// Where to ask for the next certificate: `host:port`.
    pub enrolment: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(host: &str) -> Token {
        Token {
            host: host.to_owned(),
            port: 8884,
            authority: [0xab; 32],
            secret: [0x01; 16],
        }
    }

    #[test]
    fn a_token_reads_as_it_was_written_and_does_not_show_its_secret() {
        for host in ["10.0.0.5", "lab.local", "fe80::1"] {
            let token = token(host);
            assert_eq!(token.to_string().parse::<Token>().as_ref(), Ok(&token));
            assert!(!format!("{token:?}").contains("0101"), "{token:?}");
        }
    }

    #[test]
    fn what_is_no_token_is_refused_without_repeating_it() {
        let good = token("lab").to_string();
        for bad in [
            "",
            "regatta-enrol://",
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
                "regatta-enrol://{}:1/{}/{}",
                "x".repeat(10_000),
                "ab".repeat(32),
                "01".repeat(16)
            ),
        ] {
            let error = bad.parse::<Token>().unwrap_err().to_string();
            assert!(error.contains("regatta device add") && error.len() < 200, "{bad}");
        }
    }
}
