//! A broker's address: `mqtt://host:port`.

use std::{fmt, net::SocketAddr, str::FromStr};

/// MQTT's registered port.
const DEFAULT_PORT: u16 = 1883;

/// An address that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not of the form mqtt://host:port")]
pub(crate) struct AddressError {
    given: String,
}

/// Where a broker is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    /// Name or number of the host, without brackets.
    pub(crate) host: String,
    /// TCP port.
    pub(crate) port: u16,
}

impl From<SocketAddr> for Address {
    fn from(socket: SocketAddr) -> Self {
        Self {
            host: socket.ip().to_string(),
            port: socket.port(),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "mqtt://[{}]:{}", self.host, self.port)
        } else {
            write!(f, "mqtt://{}:{}", self.host, self.port)
        }
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(given: &str) -> Result<Self, AddressError> {
        let wrong = || AddressError {
            given: given.to_owned(),
        };
        let rest = given.strip_prefix("mqtt://").ok_or_else(wrong)?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = match rest.strip_prefix('[') {
            Some(bracketed) => {
                let (host, behind) = bracketed.split_once(']').ok_or_else(wrong)?;
                (host, behind.strip_prefix(':'))
            }
            None => match rest.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (rest, None),
            },
        };
        let port = port.map_or(Ok(DEFAULT_PORT), |port| port.parse().map_err(|_| wrong()))?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
        if host.is_empty() || port == 0 || !host.chars().all(is_plain) {
            return Err(wrong());
        }
        Ok(Self {
            host: host.to_owned(),
            port,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes() {
        for text in ["mqtt://lab:1884", "mqtt://127.0.0.1:1", "mqtt://[::1]:1883"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        assert_eq!("mqtt://lab".parse::<Address>().unwrap().port, 1883);
    }

    #[test]
    fn refuses_what_is_no_address() {
        for text in [
            "",
            "lab:1883",
            "mqtts://lab:8883",
            "mqtt://",
            "mqtt://lab:x",
            "mqtt://lab:0",
            "mqtt://a b:1",
        ] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
